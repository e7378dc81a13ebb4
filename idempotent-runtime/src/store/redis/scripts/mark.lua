-- Notes that somebody waits while version ARGV[1] stands. No part of the version: whoever writes next need not have seen it.
if redis.call('HGET', KEYS[1], 'version') == ARGV[1] then
    return redis.call('HSETNX', KEYS[1], 'waited', '1')
end
return 0
