-- Gives the fields of steps, from the first to the last of these, what stands under each, and its
-- note.
--
-- ARGV: first field · last field
local first, last = unpack(ARGV)
local fields = { first }
if first ~= last then
    fields = {}
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
        if field >= first and field <= last then
            fields[#fields + 1] = field
        end
    end
    table.sort(fields)
end
local found = {}
for _, field in ipairs(fields) do
    local step = redis.call('HGET', KEYS[1], field)
    if step then
        found[#found + 1], found[#found + 2] = field, step
        found[#found + 1] = note_of(field)
    end
end
return found
