-- before None

-- begins None
BEGIN
-- before Some(ReadCommitted)

-- begins Some(ReadCommitted)
BEGIN ISOLATION LEVEL READ COMMITTED
-- before Some(RepeatableRead)

-- begins Some(RepeatableRead)
BEGIN ISOLATION LEVEL REPEATABLE READ
-- before Some(Serializable)

-- begins Some(Serializable)
BEGIN ISOLATION LEVEL SERIALIZABLE
-- behind
none
