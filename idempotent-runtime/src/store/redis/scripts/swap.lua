-- Puts the next version where version `seen` stands, or nothing where it is empty.
--
-- ARGV: seen · state · least token · lease · retention, in microseconds from now; what is empty stays as it is
--       how long the record stays from then on, in microseconds · whether a record begins
--       how many fields are deleted, their names · names and values of the fields that are set
local seen, state, least_token, lease, retention, keep, begins, deleted = unpack(ARGV, 1, 8)
local now = clock()
local token, lease_end, expires, before
if seen == '' then
    local stands = record()
    if stands[VERSION] then
        return { 0, now, unpack(stands) }
    end
    -- Without a version it is no record, but what somebody left of one.
    for _, cell in ipairs(stands) do
        if cell then
            redis.call('DEL', KEYS[1])
            break
        end
    end
else
    local version
    version, token, lease_end, expires, before =
        unpack(redis.call('HMGET', KEYS[1], 'version', 'token', 'lease_end', 'expires', 'state'))
    if version ~= seen then
        return { 0, now, unpack(record()) }
    end
end

token, lease_end, expires = token or '0', lease_end or now, expires or now
if least_token ~= '' then
    token = is_less(least_token, now) and now or least_token
end
if lease ~= '' then
    lease_end = after(now, lease)
end
if retention ~= '' then
    expires = after(now, retention)
end

-- The first write: the one that is refused where memory is short, with nothing done.
local set = { 'token', token, 'lease_end', lease_end, 'expires', expires }
if begins ~= '' then
    set[#set + 1], set[#set + 2] = 'created', now
end
if state ~= RUNNING then
    set[#set + 1], set[#set + 2] = 'finished', now
end
local first = 9 + tonumber(deleted)
for place = first, #ARGV do
    set[#set + 1] = ARGV[place]
end
redis.call('HSET', KEYS[1], unpack(set))

if begins ~= '' and seen ~= '' and redis.call('HDEL', KEYS[1], 'steps') == 1 then
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
        if string.find(field, 'step:', 1, true) then
            redis.call('HDEL', KEYS[1], field)
        end
    end
end

if seen ~= '' then
    if state == RUNNING then
        redis.call('HDEL', KEYS[1], 'finished')
    end
    if first > 9 then
        redis.call('HDEL', KEYS[1], unpack(ARGV, 9, first - 1))
    end
    -- Also of a lease that its holder ended: somebody may take over at once.
    if (state ~= RUNNING or lease == '0') and redis.call('HDEL', KEYS[1], 'waited') == 1 then
        tell()
    end
end

-- Redis forgets by itself what is over, never what somebody holds or must still settle; never early, so rounded up.
local gone = after(expires, keep)
if (state == DONE or state == RELEASED) and #gone <= 16 then
    redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.ceil(tonumber(gone) / 1000)))
elseif seen ~= '' then
    redis.call('PERSIST', KEYS[1])
end

-- How the record moves in the set of what needs somebody. In a cluster the client moves it.
local moves = 0
if needs_attention(state) then
    moves = moves + 1
end
if needs_attention(before) then
    moves = moves - 1
end
if SET and moves > 0 then
    redis.pcall('ZADD', set_key(), '0', id())
elseif SET and moves < 0 then
    redis.pcall('ZREM', set_key(), id())
end
return { 1, now, token, lease_end, expires, moves }
