-- Deletes the record if it has been expired for ARGV[1], in microseconds, and tells whether it was.
local state, on_crash, lease_end, expires, waited =
    unpack(redis.call('HMGET', KEYS[1], 'state', 'on_crash', 'lease_end', 'expires', 'waited'))
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
