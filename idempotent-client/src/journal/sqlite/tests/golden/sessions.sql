-- journal_mode
wal
-- synchronous
2
-- busy_timeout
5000
-- foreign_keys
1
