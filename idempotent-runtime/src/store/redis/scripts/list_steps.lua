-- Gives the fields of steps, from the first to the last of these, the head of what stands under
-- each: all but the bytes of its outcome, and its note.
--
-- ARGV: first field · last field
local first, last = unpack(ARGV)

-- Behind 66 bytes stand two framed texts, four bytes, and five of an outcome, if there is one. The
-- length of a frame has seven bits a byte, the lowest ones first.
local function head(step)
    local at = 67
    for _ = 1, 2 do
        local length, scale = 0, 1
        repeat
            local byte = string.byte(step, at)
            length, scale, at = length + byte % 128 * scale, scale * 128, at + 1
        until byte < 128
        at = at + length
    end
    return string.sub(step, 1, at + 8)
end

local fields = {}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if field >= first and field <= last then
        fields[#fields + 1] = field
    end
end
table.sort(fields)
local found = {}
for _, field in ipairs(fields) do
    found[#found + 1], found[#found + 2] = field, head(redis.call('HGET', KEYS[1], field))
    found[#found + 1] = note_of(field)
end
return found
