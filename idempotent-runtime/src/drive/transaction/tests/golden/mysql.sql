-- before None
SET @idempotent_autocommit = @@SESSION.autocommit, SESSION autocommit = 0, SESSION autocommit = 1, SESSION autocommit = 0
-- begins None
START TRANSACTION
-- before Some(ReadCommitted)
SET @idempotent_autocommit = @@SESSION.autocommit, SESSION autocommit = 0, SESSION autocommit = 1, SESSION autocommit = 0
-- message
SET TRANSACTION ISOLATION LEVEL READ COMMITTED
-- begins Some(ReadCommitted)
START TRANSACTION
-- before Some(RepeatableRead)
SET @idempotent_autocommit = @@SESSION.autocommit, SESSION autocommit = 0, SESSION autocommit = 1, SESSION autocommit = 0
-- message
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
-- begins Some(RepeatableRead)
START TRANSACTION
-- before Some(Serializable)
SET @idempotent_autocommit = @@SESSION.autocommit, SESSION autocommit = 0, SESSION autocommit = 1, SESSION autocommit = 0
-- message
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
-- begins Some(Serializable)
START TRANSACTION
-- behind
SET SESSION autocommit = @idempotent_autocommit
