-- Takes a record out of the set of what needs somebody, if it needs nobody: gives how many it took.
-- In a cluster gives 1 where the client is to take it out.
local state = redis.pcall('HGET', KEYS[1], 'state')
if needs_attention(state) then
    return 0
end
return SET and redis.call('ZREM', set_key(), id()) or 1
