-- Puts a step where its record takes steps of this attempt and none stands but version `seen`, with which a step begins.
-- Gives 1 where it stands, 2 with what stands and its note, or 0 and the record.
--
-- ARGV: field · version that was seen, or empty · attempt id · step · its note, or empty
local field, seen, attempt_id, step, note = unpack(ARGV)
local stands = record()
local state = stands[STATE]
if stands[ATTEMPT_ID] ~= attempt_id or (state ~= RUNNING and state ~= UNCERTAIN and state ~= UNDOING) then
    return { 0, clock(), unpack(stands) }
end
local other = redis.call('HGET', KEYS[1], field)
if other and string.sub(other, 1, 16) ~= seen then
    return { 2, other, note_of(field) }
end
-- By the mark, a record that begins again finds that it has steps to forget.
redis.call('HSET', KEYS[1], field, step, 'steps', '1')
if note ~= '' then
    redis.call('HSET', KEYS[1], note_field(field), note)
else
    redis.call('HDEL', KEYS[1], note_field(field))
end
return { 1 }
