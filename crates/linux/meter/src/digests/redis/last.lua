-- The name of a stream's last entry, whatever is in it. KEYS: the stream.
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
return last[1] and last[1][1] or '0-0'
