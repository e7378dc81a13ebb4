-- Gives the records that the set in KEYS[1] names, those behind a name: the last name where there
-- may be more, the time, and each record behind its name and the time. The length of its outcome
-- stands at the end, in place of the outcome. A name of no record is left out.
--
-- ARGV: the least name, as a range has it · how many names
local prefix, now = string.sub(KEYS[1], 1, -1 - #SET), clock()
local names = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', '0', ARGV[2])
local found = { #names == tonumber(ARGV[2]) and names[#names] or '', now }
for _, name in ipairs(names) do
    local fields = record_at(prefix .. name)
    if not fields.err and fields[VERSION] then
        local outcome = fields[OUTCOME]
        fields[OUTCOME] = outcome and ''
        fields[#fields + 1] = outcome and #outcome or 0
        found[#found + 1] = { name, now, unpack(fields) }
    end
end
return found
