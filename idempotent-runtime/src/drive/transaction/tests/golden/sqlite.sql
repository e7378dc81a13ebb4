-- before None

-- begins None
BEGIN IMMEDIATE
-- before Some(ReadCommitted)

-- begins Some(ReadCommitted)
BEGIN IMMEDIATE
-- before Some(RepeatableRead)

-- begins Some(RepeatableRead)
BEGIN IMMEDIATE
-- before Some(Serializable)

-- begins Some(Serializable)
BEGIN IMMEDIATE
-- behind
none
