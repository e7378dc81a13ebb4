-- Moments and tokens are decimal text without leading zeros: the largest ones do not fit the doubles that numbers are here.

local LAST = '9223372036854775807'

local function is_less(a, b)
    return #a < #b or (#a == #b and a < b)
end

-- The server's time in microseconds.
local function clock()
    local time = redis.call('TIME')
    return time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
end

-- The moment `duration` after `now`; the last moment there is where that lies behind it.
local function after(now, duration)
    local sum = tonumber(now) + tonumber(duration)
    if sum < 2 ^ 53 then
        return string.format('%.0f', sum)
    end
    -- In halves of nine digits, which numbers hold exactly.
    local low = tonumber(string.sub(now, -9)) + tonumber(string.sub(duration, -9))
    local high = tonumber('0' .. string.sub(now, 1, -10)) + tonumber('0' .. string.sub(duration, 1, -10))
    if low >= 1e9 then
        low, high = low - 1e9, high + 1
    end
    sum = string.format('%.0f%09.0f', high, low)
    return is_less(LAST, sum) and LAST or sum
end

-- The field of the note about the step in this field: builds that know no notes do not read it.
local function note_field(field)
    return 'note:' .. field
end

local function note_of(field)
    return redis.call('HGET', KEYS[1], note_field(field)) or ''
end

-- The id of the record, as its key ends.
local function id()
    return string.sub(KEYS[1], -64)
end

-- Tells who waits in other processes. Nobody has to be allowed to: a waiter also looks by itself.
local function tell()
    redis.pcall('PUBLISH', string.sub(KEYS[1], 1, -65) .. 'moved', id())
end

-- The key of the set of what needs somebody. It is not declared: where keys are spread, it may lie elsewhere, and the record stands.
local function set_key()
    return string.sub(KEYS[1], 1, -65) .. SET
end

local function needs_attention(state)
    return state == UNCERTAIN or state == PARKED or state == UNDOING
end
