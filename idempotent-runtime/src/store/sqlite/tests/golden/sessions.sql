-- the look for a log
PRAGMA main.journal_mode
-- the look for a lock
PRAGMA main.locking_mode
-- the look for a transaction
PRAGMA temp.synchronous = FULL
-- what undoes several writes
ROLLBACK
-- journal_mode of a file
wal
-- synchronous of a file
2
-- busy_timeout of a file
5000
-- locking_mode of a file
normal
-- foreign_keys of a file
1
-- the look for a version in a file
SELECT version FROM golden_records WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101'
-- journal_mode of memory
memory
-- synchronous of memory
2
-- busy_timeout of memory
5000
-- locking_mode of memory
normal
-- foreign_keys of memory
1
-- the look for a version in memory
SELECT version FROM golden_records WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101'
