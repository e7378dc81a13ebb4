-- a release, 1
SAVEPOINT idempotent_<name>
-- a release, 2
ROLLBACK TO SAVEPOINT idempotent_<name>
-- a release, 3
RELEASE SAVEPOINT idempotent_<name>
-- a release that asks, 1
SAVEPOINT idempotent_<name>
-- a release that asks, 2
ROLLBACK TO SAVEPOINT idempotent_<name>
-- a release that asks, 3
RELEASE SAVEPOINT idempotent_<name>; SELECT 1; SELECT 2
-- the look for an end
SELECT 1
