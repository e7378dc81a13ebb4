CREATE TABLE IF NOT EXISTS idempotent_audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    written INTEGER NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    record BLOB,
    operation TEXT,
    step BLOB,
    label TEXT,
    stream BLOB,
    state_before INTEGER,
    state_after INTEGER,
    attempt INTEGER,
    token INTEGER,
    holder TEXT,
    db_user TEXT,
    note TEXT,
    note_by TEXT,
    forgettable INTEGER,
    outcome_kind INTEGER,
    outcome_hash BLOB,
    hash_before BLOB,
    batch INTEGER,
    place INTEGER,
    leaf BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS idempotent_audit_seals (
    batch INTEGER NOT NULL PRIMARY KEY,
    format INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    root BLOB NOT NULL,
    previous BLOB NOT NULL,
    sealed INTEGER NOT NULL,
    hash BLOB NOT NULL,
    held INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE IF NOT EXISTS idempotent_audit_outcomes (
    number INTEGER NOT NULL PRIMARY KEY,
    outcome BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS idempotent_audit_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    event TEXT NOT NULL,
    holder TEXT,
    detail TEXT,
    person TEXT,
    written INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000),
    db_user TEXT DEFAULT (NULL)
) STRICT;
CREATE TABLE IF NOT EXISTS idempotent_audit_schema (
    source TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    found INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS idempotent_audit_open ON idempotent_audit (batch, number);
CREATE INDEX IF NOT EXISTS idempotent_audit_record ON idempotent_audit (record, number) WHERE batch IS NOT NULL;
DROP TRIGGER IF EXISTS idempotent_audit_record_insert;
CREATE TRIGGER idempotent_audit_record_insert AFTER INSERT ON idempotent_records BEGIN INSERT INTO idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_after, note, note_by, outcome_hash) VALUES (NEW.id, NEW.operation, NEW.attempt, NEW.token, NEW.holder, NEW.outcome_kind, CASE WHEN NEW.outcome_kind = 4 THEN CASE WHEN hex(substr(NEW.outcome, 1, 1)) = '01' THEN substr(NEW.outcome, 2, 8) WHEN hex(substr(NEW.outcome, 1, 1)) IN ('02', '03') THEN substr(NEW.outcome, -40, 8) WHEN hex(substr(NEW.outcome, 1, 1)) IN ('06', '07') THEN substr(NEW.outcome, -84, 8) END END, 'record', CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, NULL, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' ELSE 'call' END, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, NEW.outcome); END;
DROP TRIGGER IF EXISTS idempotent_audit_record_update;
CREATE TRIGGER idempotent_audit_record_update AFTER UPDATE ON idempotent_records WHEN OLD.id IS NOT NEW.id OR OLD.operation IS NOT NEW.operation OR OLD.state IS NOT NEW.state OR OLD.token IS NOT NEW.token OR OLD.attempt_id IS NOT NEW.attempt_id OR OLD.outcome IS NOT NEW.outcome OR OLD.outcome_kind IS NOT NEW.outcome_kind OR OLD.outcome_schema IS NOT NEW.outcome_schema OR OLD.note_of IS NOT NEW.note_of AND (NEW.note_by IS NOT NULL OR OLD.note IS NOT NEW.note) BEGIN INSERT INTO idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_before, state_after, note, note_by, hash_before, outcome_hash) VALUES (NEW.id, NEW.operation, NEW.attempt, NEW.token, NEW.holder, NEW.outcome_kind, CASE WHEN NEW.outcome_kind = 4 THEN CASE WHEN hex(substr(NEW.outcome, 1, 1)) = '01' THEN substr(NEW.outcome, 2, 8) WHEN hex(substr(NEW.outcome, 1, 1)) IN ('02', '03') THEN substr(NEW.outcome, -40, 8) WHEN hex(substr(NEW.outcome, 1, 1)) IN ('06', '07') THEN substr(NEW.outcome, -84, 8) END END, 'record', CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, NULL, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' WHEN OLD.state IN (1, 6) AND OLD.created = NEW.created AND OLD.attempt_id IS NOT NEW.attempt_id THEN 'takeover' WHEN (OLD.outcome IS NOT NEW.outcome OR OLD.outcome_kind IS NOT NEW.outcome_kind OR OLD.outcome_schema IS NOT NEW.outcome_schema) AND NOT (OLD.id IS NOT NEW.id OR OLD.operation IS NOT NEW.operation OR OLD.state IS NOT NEW.state OR OLD.token IS NOT NEW.token OR OLD.attempt_id IS NOT NEW.attempt_id) THEN 'rewritten' ELSE 'call' END, OLD.state, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, OLD.outcome, NEW.outcome); END;
DROP TRIGGER IF EXISTS idempotent_audit_record_delete;
CREATE TRIGGER idempotent_audit_record_delete AFTER DELETE ON idempotent_records BEGIN INSERT INTO idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_before, outcome_hash, forgettable) VALUES (OLD.id, OLD.operation, OLD.attempt, OLD.token, OLD.holder, OLD.outcome_kind, CASE WHEN OLD.outcome_kind = 4 THEN CASE WHEN hex(substr(OLD.outcome, 1, 1)) = '01' THEN substr(OLD.outcome, 2, 8) WHEN hex(substr(OLD.outcome, 1, 1)) IN ('02', '03') THEN substr(OLD.outcome, -40, 8) WHEN hex(substr(OLD.outcome, 1, 1)) IN ('06', '07') THEN substr(OLD.outcome, -84, 8) END END, 'record', CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, NULL, 'deleted', OLD.state, OLD.outcome, CASE WHEN OLD.expires <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AND (OLD.state IN (2, 3) OR OLD.state = 1 AND OLD.on_crash = 1 AND OLD.lease_end <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000) THEN 1 ELSE 0 END); END;
INSERT INTO idempotent_audit_schema (source, version, found) SELECT 'record', 1, 0 WHERE NOT EXISTS (SELECT 1 FROM idempotent_audit_schema WHERE source = 'record');
DROP TRIGGER IF EXISTS idempotent_audit_step_insert;
CREATE TRIGGER idempotent_audit_step_insert AFTER INSERT ON idempotent_steps BEGIN INSERT INTO idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_after, note, note_by, outcome_hash) VALUES (NEW.record, NEW.name, NEW.label, NEW.outcome_kind, 'step', CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, NULL, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' ELSE 'call' END, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, NEW.outcome); END;
DROP TRIGGER IF EXISTS idempotent_audit_step_update;
CREATE TRIGGER idempotent_audit_step_update AFTER UPDATE ON idempotent_steps WHEN OLD.record IS NOT NEW.record OR OLD.name IS NOT NEW.name OR OLD.state IS NOT NEW.state OR OLD.attempt_id IS NOT NEW.attempt_id OR OLD.outcome IS NOT NEW.outcome OR OLD.outcome_kind IS NOT NEW.outcome_kind OR OLD.outcome_schema IS NOT NEW.outcome_schema OR OLD.note_of IS NOT NEW.note_of AND (NEW.note_by IS NOT NULL OR OLD.note IS NOT NEW.note) BEGIN INSERT INTO idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_before, state_after, note, note_by, hash_before, outcome_hash) VALUES (NEW.record, NEW.name, NEW.label, NEW.outcome_kind, 'step', CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, NULL, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' WHEN OLD.state = 1 AND OLD.attempt_id IS NOT NEW.attempt_id THEN 'takeover' WHEN (OLD.outcome IS NOT NEW.outcome OR OLD.outcome_kind IS NOT NEW.outcome_kind OR OLD.outcome_schema IS NOT NEW.outcome_schema) AND NOT (OLD.record IS NOT NEW.record OR OLD.name IS NOT NEW.name OR OLD.state IS NOT NEW.state OR OLD.attempt_id IS NOT NEW.attempt_id) THEN 'rewritten' ELSE 'call' END, OLD.state, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, OLD.outcome, NEW.outcome); END;
DROP TRIGGER IF EXISTS idempotent_audit_step_delete;
CREATE TRIGGER idempotent_audit_step_delete AFTER DELETE ON idempotent_steps BEGIN INSERT INTO idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_before, outcome_hash) VALUES (OLD.record, OLD.name, OLD.label, OLD.outcome_kind, 'step', CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, NULL, 'deleted', OLD.state, OLD.outcome); END;
INSERT INTO idempotent_audit_schema (source, version, found) SELECT 'step', 1, 0 WHERE NOT EXISTS (SELECT 1 FROM idempotent_audit_schema WHERE source = 'step');
DROP TRIGGER IF EXISTS idempotent_audit_event_insert;
CREATE TRIGGER idempotent_audit_event_insert AFTER INSERT ON idempotent_audit_events BEGIN INSERT INTO idempotent_audit (label, holder, note, note_by, source, written, db_user, kind) VALUES (NEW.event, NEW.holder, NEW.detail, NEW.person, 'event', CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, NULL, 'event'); END;
DROP TRIGGER IF EXISTS idempotent_audit_event_update;
CREATE TRIGGER idempotent_audit_event_update BEFORE UPDATE ON idempotent_audit_events BEGIN SELECT RAISE(ABORT, 'the audit refuses UPDATE of events'); END;
DROP TRIGGER IF EXISTS idempotent_audit_event_delete;
CREATE TRIGGER idempotent_audit_event_delete BEFORE DELETE ON idempotent_audit_events BEGIN SELECT RAISE(ABORT, 'the audit refuses DELETE of events'); END;
INSERT INTO idempotent_audit_schema (source, version, found) SELECT 'event', 1, 1 WHERE NOT EXISTS (SELECT 1 FROM idempotent_audit_schema WHERE source = 'event');
