DELIMITER //
CREATE TABLE IF NOT EXISTS idempotent_audit (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    written BIGINT NOT NULL,
    source VARCHAR(64) NOT NULL,
    kind VARCHAR(64) NOT NULL,
    record VARBINARY(256),
    operation LONGTEXT,
    step VARBINARY(256),
    label LONGTEXT,
    stream VARBINARY(256),
    state_before BIGINT,
    state_after BIGINT,
    attempt BIGINT,
    token BIGINT,
    holder LONGTEXT,
    db_user LONGTEXT,
    note LONGTEXT,
    note_by LONGTEXT,
    forgettable BIGINT,
    outcome_kind BIGINT,
    outcome_hash VARBINARY(32),
    hash_before VARBINARY(32),
    batch BIGINT,
    place BIGINT,
    leaf VARBINARY(256)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
//
CREATE TABLE IF NOT EXISTS idempotent_audit_seals (
    batch BIGINT NOT NULL PRIMARY KEY,
    format BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    root VARBINARY(32) NOT NULL,
    previous VARBINARY(32) NOT NULL,
    sealed BIGINT NOT NULL,
    hash VARBINARY(32) NOT NULL,
    held BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
//
CREATE TABLE IF NOT EXISTS idempotent_audit_outcomes (
    number BIGINT NOT NULL PRIMARY KEY,
    outcome LONGBLOB NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
//
CREATE TABLE IF NOT EXISTS idempotent_audit_events (
    number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event VARCHAR(64) NOT NULL,
    holder LONGTEXT,
    detail LONGTEXT,
    person LONGTEXT,
    written BIGINT NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
    db_user LONGTEXT DEFAULT (USER())
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
//
CREATE TABLE IF NOT EXISTS idempotent_audit_schema (
    source VARCHAR(64) NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL,
    found BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
//
ALTER TABLE idempotent_audit ADD KEY idempotent_audit_open (batch, number)
//
ALTER TABLE idempotent_audit ADD KEY idempotent_audit_record (record, number)
//
DROP FUNCTION IF EXISTS idempotent_audit_shown
//
CREATE FUNCTION idempotent_audit_shown() RETURNS LONGTEXT READS SQL DATA SQL SECURITY DEFINER RETURN (SELECT JSON_ARRAYAGG(line) FROM (
             SELECT CONCAT(LOWER(trigger_name), ' ', SHA2(CONCAT(action_timing, ' ', event_manipulation, ' ', LOWER(event_object_table), ' ', action_statement), 256)) AS line
             FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND LOCATE(_utf8mb4 x'6964656d706f74656e745f6175646974', LOWER(trigger_name)) = 1
             UNION ALL SELECT CONCAT(LOWER(table_name), ' table')
             FROM information_schema.tables WHERE table_schema = DATABASE() AND LOCATE(_utf8mb4 x'6964656d706f74656e745f6175646974', LOWER(table_name)) = 1) AS shown)
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_record_insert */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_record_insert AFTER INSERT ON idempotent_records FOR EACH ROW BEGIN INSERT INTO idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_after, note, note_by, outcome_hash) VALUES (NEW.id, NEW.operation, NEW.attempt, NEW.token, NEW.holder, NEW.outcome_kind, CASE WHEN NEW.outcome_kind = 4 THEN CASE WHEN HEX(SUBSTR(NEW.outcome, 1, 1)) = '01' THEN SUBSTR(NEW.outcome, 2, 8) WHEN HEX(SUBSTR(NEW.outcome, 1, 1)) IN ('02', '03') THEN SUBSTR(NEW.outcome, -40, 8) WHEN HEX(SUBSTR(NEW.outcome, 1, 1)) IN ('06', '07') THEN SUBSTR(NEW.outcome, -84, 8) END END, 'record', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), USER(), CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' ELSE 'call' END, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, UNHEX(SHA2(NEW.outcome, 256))); END
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_record_update */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_record_update AFTER UPDATE ON idempotent_records FOR EACH ROW BEGIN IF NOT (OLD.id <=> NEW.id) OR NOT (OLD.operation <=> NEW.operation) OR NOT (OLD.state <=> NEW.state) OR NOT (OLD.token <=> NEW.token) OR NOT (OLD.attempt_id <=> NEW.attempt_id) OR NOT (OLD.outcome <=> NEW.outcome) OR NOT (OLD.outcome_kind <=> NEW.outcome_kind) OR NOT (OLD.outcome_schema <=> NEW.outcome_schema) OR NOT (OLD.note_of <=> NEW.note_of) AND (NEW.note_by IS NOT NULL OR NOT (OLD.note <=> NEW.note)) THEN INSERT INTO idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_before, state_after, note, note_by, hash_before, outcome_hash) VALUES (NEW.id, NEW.operation, NEW.attempt, NEW.token, NEW.holder, NEW.outcome_kind, CASE WHEN NEW.outcome_kind = 4 THEN CASE WHEN HEX(SUBSTR(NEW.outcome, 1, 1)) = '01' THEN SUBSTR(NEW.outcome, 2, 8) WHEN HEX(SUBSTR(NEW.outcome, 1, 1)) IN ('02', '03') THEN SUBSTR(NEW.outcome, -40, 8) WHEN HEX(SUBSTR(NEW.outcome, 1, 1)) IN ('06', '07') THEN SUBSTR(NEW.outcome, -84, 8) END END, 'record', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), USER(), CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' WHEN OLD.state IN (1, 6) AND OLD.created = NEW.created AND NOT (OLD.attempt_id <=> NEW.attempt_id) THEN 'takeover' WHEN (NOT (OLD.outcome <=> NEW.outcome) OR NOT (OLD.outcome_kind <=> NEW.outcome_kind) OR NOT (OLD.outcome_schema <=> NEW.outcome_schema)) AND NOT (NOT (OLD.id <=> NEW.id) OR NOT (OLD.operation <=> NEW.operation) OR NOT (OLD.state <=> NEW.state) OR NOT (OLD.token <=> NEW.token) OR NOT (OLD.attempt_id <=> NEW.attempt_id)) THEN 'rewritten' ELSE 'call' END, OLD.state, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, UNHEX(SHA2(OLD.outcome, 256)), UNHEX(SHA2(NEW.outcome, 256))); END IF; END
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_record_delete */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_record_delete AFTER DELETE ON idempotent_records FOR EACH ROW BEGIN INSERT INTO idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_before, outcome_hash, forgettable) VALUES (OLD.id, OLD.operation, OLD.attempt, OLD.token, OLD.holder, OLD.outcome_kind, CASE WHEN OLD.outcome_kind = 4 THEN CASE WHEN HEX(SUBSTR(OLD.outcome, 1, 1)) = '01' THEN SUBSTR(OLD.outcome, 2, 8) WHEN HEX(SUBSTR(OLD.outcome, 1, 1)) IN ('02', '03') THEN SUBSTR(OLD.outcome, -40, 8) WHEN HEX(SUBSTR(OLD.outcome, 1, 1)) IN ('06', '07') THEN SUBSTR(OLD.outcome, -84, 8) END END, 'record', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), USER(), 'deleted', OLD.state, UNHEX(SHA2(OLD.outcome, 256)), CASE WHEN OLD.expires <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AND (OLD.state IN (2, 3) OR OLD.state = 1 AND OLD.on_crash = 1 AND OLD.lease_end <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) THEN 1 ELSE 0 END); END
//
INSERT INTO idempotent_audit_schema (source, version, found) SELECT 'record', 1, 0 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM idempotent_audit_schema WHERE source = 'record')
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_step_insert */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_step_insert AFTER INSERT ON idempotent_steps FOR EACH ROW BEGIN INSERT INTO idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_after, note, note_by, outcome_hash) VALUES (NEW.record, NEW.name, NEW.label, NEW.outcome_kind, 'step', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), USER(), CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' ELSE 'call' END, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, UNHEX(SHA2(NEW.outcome, 256))); END
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_step_update */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_step_update AFTER UPDATE ON idempotent_steps FOR EACH ROW BEGIN IF NOT (OLD.record <=> NEW.record) OR NOT (OLD.name <=> NEW.name) OR NOT (OLD.state <=> NEW.state) OR NOT (OLD.attempt_id <=> NEW.attempt_id) OR NOT (OLD.outcome <=> NEW.outcome) OR NOT (OLD.outcome_kind <=> NEW.outcome_kind) OR NOT (OLD.outcome_schema <=> NEW.outcome_schema) OR NOT (OLD.note_of <=> NEW.note_of) AND (NEW.note_by IS NOT NULL OR NOT (OLD.note <=> NEW.note)) THEN INSERT INTO idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_before, state_after, note, note_by, hash_before, outcome_hash) VALUES (NEW.record, NEW.name, NEW.label, NEW.outcome_kind, 'step', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), USER(), CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' WHEN OLD.state = 1 AND NOT (OLD.attempt_id <=> NEW.attempt_id) THEN 'takeover' WHEN (NOT (OLD.outcome <=> NEW.outcome) OR NOT (OLD.outcome_kind <=> NEW.outcome_kind) OR NOT (OLD.outcome_schema <=> NEW.outcome_schema)) AND NOT (NOT (OLD.record <=> NEW.record) OR NOT (OLD.name <=> NEW.name) OR NOT (OLD.state <=> NEW.state) OR NOT (OLD.attempt_id <=> NEW.attempt_id)) THEN 'rewritten' ELSE 'call' END, OLD.state, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, UNHEX(SHA2(OLD.outcome, 256)), UNHEX(SHA2(NEW.outcome, 256))); END IF; END
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_step_delete */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_step_delete AFTER DELETE ON idempotent_steps FOR EACH ROW BEGIN INSERT INTO idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_before, outcome_hash) VALUES (OLD.record, OLD.name, OLD.label, OLD.outcome_kind, 'step', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), USER(), 'deleted', OLD.state, UNHEX(SHA2(OLD.outcome, 256))); END
//
INSERT INTO idempotent_audit_schema (source, version, found) SELECT 'step', 1, 0 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM idempotent_audit_schema WHERE source = 'step')
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_event_insert */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_event_insert AFTER INSERT ON idempotent_audit_events FOR EACH ROW BEGIN INSERT INTO idempotent_audit (label, holder, note, note_by, source, written, db_user, kind) VALUES (NEW.event, NEW.holder, NEW.detail, NEW.person, 'event', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), USER(), 'event'); END
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_event_update */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_event_update BEFORE UPDATE ON idempotent_audit_events FOR EACH ROW BEGIN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the audit refuses UPDATE of events'; END
//
/*!80000 DROP TRIGGER IF EXISTS idempotent_audit_event_delete */
//
CREATE /*M! OR REPLACE */ TRIGGER idempotent_audit_event_delete BEFORE DELETE ON idempotent_audit_events FOR EACH ROW BEGIN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the audit refuses DELETE of events'; END
//
INSERT INTO idempotent_audit_schema (source, version, found) SELECT 'event', 1, 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM idempotent_audit_schema WHERE source = 'event')
//
DELIMITER ;
