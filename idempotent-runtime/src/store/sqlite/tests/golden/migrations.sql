-- lock
BEGIN IMMEDIATE
-- the look for the library
SELECT sqlite_version(), CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
-- the look for the table of the records
SELECT count(*) FROM sqlite_master WHERE name = 'golden_records' COLLATE NOCASE
-- the look for the version
SELECT coalesce(max(version), 0), coalesce(max(usable_from), 0) FROM golden_schema
-- the look for the store
SELECT store FROM golden_schema WHERE version = 1
-- the look for this store
SELECT store FROM golden_schema WHERE version = 1 AND store = '0123456789abcdef0123456789abcdef'
-- the table of the versions
CREATE TABLE IF NOT EXISTS golden_schema (
    version INTEGER NOT NULL PRIMARY KEY,
    applied INTEGER NOT NULL,
    usable_from INTEGER NOT NULL,
    store TEXT NOT NULL DEFAULT (lower(hex(randomblob(16))))
) STRICT;

-- step 1, usable from 1
CREATE TABLE IF NOT EXISTS golden_records (
    id BLOB NOT NULL PRIMARY KEY,
    version BLOB NOT NULL,
    operation TEXT NOT NULL,
    scope BLOB NOT NULL,
    call_key BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    digests BLOB NOT NULL,
    state INTEGER NOT NULL,
    token INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    attempt_id BLOB NOT NULL,
    holder TEXT NOT NULL,
    trace_parent TEXT,
    on_crash INTEGER NOT NULL,
    lease_end INTEGER NOT NULL,
    created INTEGER NOT NULL,
    finished INTEGER,
    expires INTEGER NOT NULL,
    outcome_kind INTEGER,
    outcome_schema INTEGER,
    outcome BLOB,
    purge_from INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS golden_records_purge ON golden_records (purge_from);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, 1);

-- step 2, usable from 1
CREATE TABLE IF NOT EXISTS golden_steps (
    record BLOB NOT NULL,
    version BLOB NOT NULL,
    name BLOB NOT NULL,
    label TEXT NOT NULL,
    state INTEGER NOT NULL,
    attempt_id BLOB NOT NULL,
    on_crash INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    digests BLOB NOT NULL,
    outcome_kind INTEGER,
    outcome_schema INTEGER,
    outcome BLOB,
    undo_number INTEGER,
    life INTEGER NOT NULL,
    PRIMARY KEY (record, name)
) STRICT;
CREATE TRIGGER IF NOT EXISTS golden_records_steps AFTER DELETE ON golden_records BEGIN
    DELETE FROM golden_steps WHERE record = OLD.id;
END;
INSERT INTO golden_schema (version, applied, usable_from) VALUES (2, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, 1);

-- step 3, usable from 1
CREATE INDEX IF NOT EXISTS golden_records_operation ON golden_records (operation, created, id);
ALTER TABLE golden_records ADD COLUMN note TEXT;
ALTER TABLE golden_records ADD COLUMN note_by TEXT;
ALTER TABLE golden_records ADD COLUMN note_of BLOB;
ALTER TABLE golden_steps ADD COLUMN note TEXT;
ALTER TABLE golden_steps ADD COLUMN note_by TEXT;
ALTER TABLE golden_steps ADD COLUMN note_of BLOB;
UPDATE golden_records SET purge_from = 9223372036854775807 WHERE state IN (4, 5, 6);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (3, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, 1);

-- ddl
CREATE TABLE IF NOT EXISTS golden_schema (
    version INTEGER NOT NULL PRIMARY KEY,
    applied INTEGER NOT NULL,
    usable_from INTEGER NOT NULL,
    store TEXT NOT NULL DEFAULT (lower(hex(randomblob(16))))
) STRICT;
CREATE TABLE IF NOT EXISTS golden_records (
    id BLOB NOT NULL PRIMARY KEY,
    version BLOB NOT NULL,
    operation TEXT NOT NULL,
    scope BLOB NOT NULL,
    call_key BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    digests BLOB NOT NULL,
    state INTEGER NOT NULL,
    token INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    attempt_id BLOB NOT NULL,
    holder TEXT NOT NULL,
    trace_parent TEXT,
    on_crash INTEGER NOT NULL,
    lease_end INTEGER NOT NULL,
    created INTEGER NOT NULL,
    finished INTEGER,
    expires INTEGER NOT NULL,
    outcome_kind INTEGER,
    outcome_schema INTEGER,
    outcome BLOB,
    purge_from INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS golden_records_purge ON golden_records (purge_from);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, 1);
CREATE TABLE IF NOT EXISTS golden_steps (
    record BLOB NOT NULL,
    version BLOB NOT NULL,
    name BLOB NOT NULL,
    label TEXT NOT NULL,
    state INTEGER NOT NULL,
    attempt_id BLOB NOT NULL,
    on_crash INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    digests BLOB NOT NULL,
    outcome_kind INTEGER,
    outcome_schema INTEGER,
    outcome BLOB,
    undo_number INTEGER,
    life INTEGER NOT NULL,
    PRIMARY KEY (record, name)
) STRICT;
CREATE TRIGGER IF NOT EXISTS golden_records_steps AFTER DELETE ON golden_records BEGIN
    DELETE FROM golden_steps WHERE record = OLD.id;
END;
INSERT INTO golden_schema (version, applied, usable_from) VALUES (2, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, 1);
CREATE INDEX IF NOT EXISTS golden_records_operation ON golden_records (operation, created, id);
ALTER TABLE golden_records ADD COLUMN note TEXT;
ALTER TABLE golden_records ADD COLUMN note_by TEXT;
ALTER TABLE golden_records ADD COLUMN note_of BLOB;
ALTER TABLE golden_steps ADD COLUMN note TEXT;
ALTER TABLE golden_steps ADD COLUMN note_by TEXT;
ALTER TABLE golden_steps ADD COLUMN note_of BLOB;
UPDATE golden_records SET purge_from = 9223372036854775807 WHERE state IN (4, 5, 6);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (3, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, 1);

