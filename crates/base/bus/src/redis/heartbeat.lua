-- KEYS: the sign of life of a host. ARGV: what it says, for how many milliseconds.
local is = redis.call('TYPE', KEYS[1]).ok
if is ~= 'none' and is ~= 'string' then return {'foreign', KEYS[1], 'a ' .. is} end
if is == 'string' and redis.call('GETRANGE', KEYS[1], 0, 100) ~= ARGV[1] then
    return {'foreign', KEYS[1], 'another text'}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {'told'}
