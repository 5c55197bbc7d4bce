-- Entries of a stream behind one of them, in order. Those that are too long to be ours are left empty.
-- KEYS: the stream. ARGV: the last entry that was read, how many at most, bytes of one at most, bytes of all at most.
local read, total, last = {}, 0, ARGV[1]
for _ = 1, tonumber(ARGV[2]) do
    -- The one that was read last comes first, unless it is gone by now.
    local found = redis.call('XRANGE', KEYS[1], last, '+', 'COUNT', 2)
    local entry = found[1]
    if entry and entry[1] == last then entry = found[2] end
    if not entry then break end
    local id, fields, size = entry[1], entry[2], 0
    for _, text in ipairs(fields) do size = size + #text end
    if size > tonumber(ARGV[3]) or #fields > 16 then fields, size = {}, 0 end
    read[#read + 1] = {id, fields}
    last, total = id, total + size
    if total > tonumber(ARGV[4]) then break end
end
return read
