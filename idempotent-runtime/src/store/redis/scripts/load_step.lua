-- Gives the step that stands under a field.
--
-- ARGV: field
return { redis.call('HGET', KEYS[1], ARGV[1]) }
