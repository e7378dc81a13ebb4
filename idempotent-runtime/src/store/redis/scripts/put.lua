-- Puts a copy of a record in the place of what is there.
--
-- ARGV: how long it may be given, in milliseconds · names and values of the fields

-- Where memory is used up, Redis refuses the first write of a script if that takes more of it, and none behind it.
local put = redis.pcall('HSET', KEYS[1], 'version', '')
redis.call('DEL', KEYS[1])
if type(put) == 'table' and string.find(put.err, 'OOM', 1, true) then
    return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
