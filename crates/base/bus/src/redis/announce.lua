-- KEYS: the hash of announcements. ARGV: a name, the announcement that is believed to be there, the new one (empty: none), for
-- how many milliseconds, the longest that can be ours. Returns what is there instead, or an empty text.
local is = redis.call('TYPE', KEYS[1]).ok
if is ~= 'none' and is ~= 'hash' then return redis.error_reply(KEYS[1] .. ' is a ' .. is .. ', not ours') end
if redis.call('HSTRLEN', KEYS[1], ARGV[1]) <= tonumber(ARGV[5]) then
    local there = redis.call('HGET', KEYS[1], ARGV[1])
    if there and there ~= '' and there ~= ARGV[2] then return there end
end
if ARGV[3] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
else
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return ''
