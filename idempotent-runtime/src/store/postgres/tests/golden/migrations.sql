-- begin
BEGIN ISOLATION LEVEL READ COMMITTED
-- lock
SET LOCAL lock_timeout = '30s';
         SELECT pg_advisory_xact_lock(hashtextextended('golden_schema', 7091));
-- the look for the table of the versions
SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('golden_schema')
-- the look for the table of the records
SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('golden_records')
-- the look for the version
SELECT coalesce(max(version), 0), coalesce(max(usable_from), 0) FROM golden_schema
-- the look for the store
SELECT store FROM golden_schema WHERE version = 1
-- the look for this store
SELECT store FROM golden_schema WHERE version = 1 AND store = '0123456789abcdef0123456789abcdef'
-- the table of the versions
CREATE TABLE IF NOT EXISTS golden_schema (
    version bigint NOT NULL PRIMARY KEY,
    applied bigint NOT NULL,
    usable_from bigint NOT NULL,
    store text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '')
);

-- step 1, usable from 1
CREATE TABLE IF NOT EXISTS golden_records (
    id bytea NOT NULL PRIMARY KEY,
    version bytea NOT NULL,
    operation text NOT NULL,
    scope bytea NOT NULL,
    call_key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    digests bytea NOT NULL,
    state bigint NOT NULL,
    token bigint NOT NULL,
    attempt bigint NOT NULL,
    attempt_id bytea NOT NULL,
    holder text NOT NULL,
    trace_parent text,
    on_crash bigint NOT NULL,
    lease_end bigint NOT NULL,
    created bigint NOT NULL,
    finished bigint,
    expires bigint NOT NULL,
    outcome_kind bigint,
    outcome_schema bigint,
    outcome bytea,
    purge_from bigint NOT NULL,
    waited boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS golden_records_purge ON golden_records (purge_from);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1);

-- step 2, usable from 1
CREATE TABLE IF NOT EXISTS golden_steps (
    record bytea NOT NULL,
    version bytea NOT NULL,
    name bytea NOT NULL,
    label text NOT NULL,
    state bigint NOT NULL,
    attempt_id bytea NOT NULL,
    on_crash bigint NOT NULL,
    fingerprint bytea NOT NULL,
    digests bytea NOT NULL,
    outcome_kind bigint,
    outcome_schema bigint,
    outcome bytea,
    undo_number bigint,
    life bigint NOT NULL,
    PRIMARY KEY (record, name)
);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1);

-- step 3, usable from 1
CREATE INDEX IF NOT EXISTS golden_records_operation
    ON golden_records (left(operation, 191) COLLATE "C", created, id);
ALTER TABLE golden_records ADD COLUMN IF NOT EXISTS note text,
    ADD COLUMN IF NOT EXISTS note_by text,
    ADD COLUMN IF NOT EXISTS note_of bytea;
ALTER TABLE golden_steps ADD COLUMN IF NOT EXISTS note text,
    ADD COLUMN IF NOT EXISTS note_by text,
    ADD COLUMN IF NOT EXISTS note_of bytea;
INSERT INTO golden_schema (version, applied, usable_from) VALUES (3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1);

-- ddl
CREATE TABLE IF NOT EXISTS golden_schema (
    version bigint NOT NULL PRIMARY KEY,
    applied bigint NOT NULL,
    usable_from bigint NOT NULL,
    store text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '')
);
CREATE TABLE IF NOT EXISTS golden_records (
    id bytea NOT NULL PRIMARY KEY,
    version bytea NOT NULL,
    operation text NOT NULL,
    scope bytea NOT NULL,
    call_key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    digests bytea NOT NULL,
    state bigint NOT NULL,
    token bigint NOT NULL,
    attempt bigint NOT NULL,
    attempt_id bytea NOT NULL,
    holder text NOT NULL,
    trace_parent text,
    on_crash bigint NOT NULL,
    lease_end bigint NOT NULL,
    created bigint NOT NULL,
    finished bigint,
    expires bigint NOT NULL,
    outcome_kind bigint,
    outcome_schema bigint,
    outcome bytea,
    purge_from bigint NOT NULL,
    waited boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS golden_records_purge ON golden_records (purge_from);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1);
CREATE TABLE IF NOT EXISTS golden_steps (
    record bytea NOT NULL,
    version bytea NOT NULL,
    name bytea NOT NULL,
    label text NOT NULL,
    state bigint NOT NULL,
    attempt_id bytea NOT NULL,
    on_crash bigint NOT NULL,
    fingerprint bytea NOT NULL,
    digests bytea NOT NULL,
    outcome_kind bigint,
    outcome_schema bigint,
    outcome bytea,
    undo_number bigint,
    life bigint NOT NULL,
    PRIMARY KEY (record, name)
);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1);
CREATE INDEX IF NOT EXISTS golden_records_operation
    ON golden_records (left(operation, 191) COLLATE "C", created, id);
ALTER TABLE golden_records ADD COLUMN IF NOT EXISTS note text,
    ADD COLUMN IF NOT EXISTS note_by text,
    ADD COLUMN IF NOT EXISTS note_of bytea;
ALTER TABLE golden_steps ADD COLUMN IF NOT EXISTS note text,
    ADD COLUMN IF NOT EXISTS note_by text,
    ADD COLUMN IF NOT EXISTS note_of bytea;
INSERT INTO golden_schema (version, applied, usable_from) VALUES (3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1);

