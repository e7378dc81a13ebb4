-- Puts a copy of a record in the place of what is there.
--
-- ARGV: how long it may be given, in milliseconds · names and values of the fields
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
