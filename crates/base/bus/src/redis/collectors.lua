-- KEYS: the hash of announcements. ARGV: the longest that can be ours, and how many are read. Returns those.
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return {} end
local cursor, seen, found = '0', 0, {}
repeat
    local step = redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 100)
    cursor = step[1]
    for at = 2, #step[2], 2 do
        seen = seen + 1
        if #step[2][at] <= tonumber(ARGV[1]) and #found < tonumber(ARGV[2]) then found[#found + 1] = step[2][at] end
    end
until cursor == '0' or seen >= 4 * tonumber(ARGV[2])
return found
