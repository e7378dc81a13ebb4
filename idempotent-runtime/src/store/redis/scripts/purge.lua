-- Deletes the record if it has been expired for ARGV[1], in microseconds: gives 1 if it was.
-- Puts one that needs somebody into their set: gives 2 if it was missing there. In a cluster gives
-- 3 for such a record, and the client puts it there. Gives 0 otherwise.
local state, on_crash, lease_end, expires, waited =
    unpack(redis.call('HMGET', KEYS[1], 'state', 'on_crash', 'lease_end', 'expires', 'waited'))
if needs_attention(state) then
    if not SET then
        return 3
    end
    return redis.pcall('ZADD', set_key(), '0', id()) == 1 and 2 or 0
end
if not (state and on_crash and lease_end and expires) then
    return 0
end
-- A time that is none says nothing of what may be deleted, and keeps nothing else from being deleted.
if not (lease_end:find('^%d+$') and expires:find('^%d+$')) then
    return 0
end
local now = clock()
local over = state == DONE or state == RELEASED
    or (state == RUNNING and on_crash == RERUN and not is_less(now, lease_end))
if not over or is_less(now, after(expires, ARGV[1])) then
    return 0
end
redis.call('DEL', KEYS[1])
if waited then
    tell()
end
return 1
