-- State and history change together or not at all: everything is looked at before anything is written.
-- KEYS: the state of one port, the history, the number of its last entry.
-- A number is the microsecond in which the history began, which tells it from any other, and a count from 1.
-- ARGV: what the state is believed to be ('=' before it, or nothing if there is none), the message, room for history.
local function is_a(key, kind)
    local is = redis.call('TYPE', key).ok
    return is == kind or is == 'none', is
end
local ours, is = is_a(KEYS[1], 'string')
if not ours then return {'foreign', KEYS[1], 'a ' .. is} end
if redis.call('STRLEN', KEYS[1]) > 65536 then return {'foreign', KEYS[1], 'a long text'} end
local there = redis.call('GET', KEYS[1])
if (there and '=' .. there or '') ~= ARGV[1] then return {'there', there} end
ours, is = is_a(KEYS[2], 'stream')
if not ours then return {'foreign', KEYS[2], 'a ' .. is} end
local history, number
local last = is_a(KEYS[3], 'string') and redis.call('GET', KEYS[3])
-- What is no number of ours counts as none: left as it is, it would silence everybody.
if last and #last <= 36 then history, number = string.match(last, '^(%d+):(%d+)$') end
-- Beyond 15 digits Lua cannot count on.
if not history or #number > 15 then
    local time = redis.call('TIME')
    history, number = time[1] .. string.format('%06d', time[2]), 0
end
last = history .. ':' .. string.format('%d', number + 1)
redis.call('SET', KEYS[3], last)
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], '*', 'number', last, 'message', ARGV[2])
redis.call('SET', KEYS[1], ARGV[2])
return {'told'}
