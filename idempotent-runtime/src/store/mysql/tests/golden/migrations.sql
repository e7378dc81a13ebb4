-- lock
SELECT GET_LOCK(CONCAT('idempotent.', LEFT(SHA2(CONCAT(DATABASE(), '.golden_schema'), 256), 32)), 30)
-- release
SELECT RELEASE_LOCK(CONCAT('idempotent.', LEFT(SHA2(CONCAT(DATABASE(), '.golden_schema'), 256), 32)))
-- the look for the table of the records
SELECT COUNT(*) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name = 'golden_records'
-- the look for the version
SELECT coalesce(max(version), 0), coalesce(max(usable_from), 0) FROM golden_schema
-- the look for the store
SELECT store FROM golden_schema WHERE version = 1
-- the look for this store
SELECT store FROM golden_schema WHERE version = 1 AND store = '0123456789abcdef0123456789abcdef'
-- the table of the versions
CREATE TABLE IF NOT EXISTS golden_schema (
    version BIGINT NOT NULL PRIMARY KEY,
    applied BIGINT NOT NULL,
    usable_from BIGINT NOT NULL,
    store CHAR(32) NOT NULL DEFAULT (REPLACE(UUID(), '-', ''))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- step 1, usable from 1
CREATE TABLE IF NOT EXISTS golden_records (
    id BINARY(32) NOT NULL PRIMARY KEY,
    version BINARY(16) NOT NULL,
    operation MEDIUMTEXT NOT NULL,
    scope MEDIUMBLOB NOT NULL,
    call_key MEDIUMBLOB NOT NULL,
    fingerprint BINARY(32) NOT NULL,
    digests MEDIUMBLOB NOT NULL,
    state BIGINT NOT NULL,
    token BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    attempt_id BINARY(16) NOT NULL,
    holder MEDIUMTEXT NOT NULL,
    trace_parent MEDIUMTEXT,
    on_crash BIGINT NOT NULL,
    lease_end BIGINT NOT NULL,
    created BIGINT NOT NULL,
    finished BIGINT,
    expires BIGINT NOT NULL,
    outcome_kind BIGINT,
    outcome_schema BIGINT,
    outcome LONGBLOB,
    purge_from BIGINT NOT NULL,
    KEY golden_records_purge (purge_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- message
INSERT INTO golden_schema (version, applied, usable_from) VALUES (1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
    ON DUPLICATE KEY UPDATE version = 1;

-- step 2, usable from 1
CREATE TABLE IF NOT EXISTS golden_steps (
    record BINARY(32) NOT NULL,
    version BINARY(16) NOT NULL,
    name BINARY(32) NOT NULL,
    label MEDIUMTEXT NOT NULL,
    state BIGINT NOT NULL,
    attempt_id BINARY(16) NOT NULL,
    on_crash BIGINT NOT NULL,
    fingerprint BINARY(32) NOT NULL,
    digests MEDIUMBLOB NOT NULL,
    outcome_kind BIGINT,
    outcome_schema BIGINT,
    outcome LONGBLOB,
    undo_number BIGINT,
    life BIGINT NOT NULL,
    PRIMARY KEY (record, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- message
INSERT INTO golden_schema (version, applied, usable_from) VALUES (2, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
    ON DUPLICATE KEY UPDATE version = 2;

-- step 3, usable from 1
ALTER TABLE golden_records ADD COLUMN note MEDIUMTEXT, ADD COLUMN note_by MEDIUMTEXT,
    ADD COLUMN note_of BINARY(16);
ALTER TABLE golden_steps ADD COLUMN note MEDIUMTEXT, ADD COLUMN note_by MEDIUMTEXT,
    ADD COLUMN note_of BINARY(16);
ALTER TABLE golden_records ADD COLUMN operation_name VARCHAR(191)
    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin GENERATED ALWAYS AS (LEFT(operation, 191)) VIRTUAL;
ALTER TABLE golden_records ADD KEY golden_records_operation (operation_name, created, id);
-- message
INSERT INTO golden_schema (version, applied, usable_from) VALUES (3, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
    ON DUPLICATE KEY UPDATE version = 3;

-- ddl
CREATE TABLE IF NOT EXISTS golden_schema (
    version BIGINT NOT NULL PRIMARY KEY,
    applied BIGINT NOT NULL,
    usable_from BIGINT NOT NULL,
    store CHAR(32) NOT NULL DEFAULT (REPLACE(UUID(), '-', ''))
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE IF NOT EXISTS golden_records (
    id BINARY(32) NOT NULL PRIMARY KEY,
    version BINARY(16) NOT NULL,
    operation MEDIUMTEXT NOT NULL,
    scope MEDIUMBLOB NOT NULL,
    call_key MEDIUMBLOB NOT NULL,
    fingerprint BINARY(32) NOT NULL,
    digests MEDIUMBLOB NOT NULL,
    state BIGINT NOT NULL,
    token BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    attempt_id BINARY(16) NOT NULL,
    holder MEDIUMTEXT NOT NULL,
    trace_parent MEDIUMTEXT,
    on_crash BIGINT NOT NULL,
    lease_end BIGINT NOT NULL,
    created BIGINT NOT NULL,
    finished BIGINT,
    expires BIGINT NOT NULL,
    outcome_kind BIGINT,
    outcome_schema BIGINT,
    outcome LONGBLOB,
    purge_from BIGINT NOT NULL,
    KEY golden_records_purge (purge_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT INTO golden_schema (version, applied, usable_from) VALUES (1, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
    ON DUPLICATE KEY UPDATE version = 1;
CREATE TABLE IF NOT EXISTS golden_steps (
    record BINARY(32) NOT NULL,
    version BINARY(16) NOT NULL,
    name BINARY(32) NOT NULL,
    label MEDIUMTEXT NOT NULL,
    state BIGINT NOT NULL,
    attempt_id BINARY(16) NOT NULL,
    on_crash BIGINT NOT NULL,
    fingerprint BINARY(32) NOT NULL,
    digests MEDIUMBLOB NOT NULL,
    outcome_kind BIGINT,
    outcome_schema BIGINT,
    outcome LONGBLOB,
    undo_number BIGINT,
    life BIGINT NOT NULL,
    PRIMARY KEY (record, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT INTO golden_schema (version, applied, usable_from) VALUES (2, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
    ON DUPLICATE KEY UPDATE version = 2;
ALTER TABLE golden_records ADD COLUMN note MEDIUMTEXT, ADD COLUMN note_by MEDIUMTEXT,
    ADD COLUMN note_of BINARY(16);
ALTER TABLE golden_steps ADD COLUMN note MEDIUMTEXT, ADD COLUMN note_by MEDIUMTEXT,
    ADD COLUMN note_of BINARY(16);
ALTER TABLE golden_records ADD COLUMN operation_name VARCHAR(191)
    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin GENERATED ALWAYS AS (LEFT(operation, 191)) VIRTUAL;
ALTER TABLE golden_records ADD KEY golden_records_operation (operation_name, created, id);
INSERT INTO golden_schema (version, applied, usable_from) VALUES (3, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
    ON DUPLICATE KEY UPDATE version = 3;

