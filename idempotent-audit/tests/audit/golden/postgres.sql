DO $script$
DECLARE place text := (SELECT quote_ident(nspname) FROM pg_catalog.pg_namespace WHERE oid = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = to_regclass('idempotent_records')));
BEGIN
    EXECUTE replace(replace($made$CREATE TABLE IF NOT EXISTS @schema@.idempotent_audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    written bigint NOT NULL,
    source text NOT NULL,
    kind text NOT NULL,
    record bytea,
    operation text,
    step bytea,
    label text,
    stream bytea,
    state_before bigint,
    state_after bigint,
    attempt bigint,
    token bigint,
    holder text,
    db_user text,
    note text,
    note_by text,
    forgettable bigint,
    outcome_kind bigint,
    outcome_hash bytea,
    hash_before bytea,
    batch bigint,
    place bigint,
    leaf bytea
)$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TABLE IF NOT EXISTS @schema@.idempotent_audit_seals (
    batch bigint NOT NULL PRIMARY KEY,
    format bigint NOT NULL,
    entries bigint NOT NULL,
    root bytea NOT NULL,
    previous bytea NOT NULL,
    sealed bigint NOT NULL,
    hash bytea NOT NULL,
    held bigint NOT NULL DEFAULT 0
)$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TABLE IF NOT EXISTS @schema@.idempotent_audit_outcomes (
    number bigint NOT NULL PRIMARY KEY,
    outcome bytea NOT NULL
)$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TABLE IF NOT EXISTS @schema@.idempotent_audit_events (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event text NOT NULL,
    holder text,
    detail text,
    person text,
    written bigint NOT NULL DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
    db_user text DEFAULT (session_user)
)$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TABLE IF NOT EXISTS @schema@.idempotent_audit_schema (
    source text NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    found bigint NOT NULL
)$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE INDEX IF NOT EXISTS idempotent_audit_open ON @schema@.idempotent_audit (batch, number)$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE INDEX IF NOT EXISTS idempotent_audit_record ON @schema@.idempotent_audit (record, number) WHERE batch IS NOT NULL$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE OR REPLACE FUNCTION @schema@.idempotent_audit_record_writes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $audit$
BEGIN
    IF TG_OP = 'INSERT' THEN INSERT INTO @schema@.idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_after, note, note_by, outcome_hash) VALUES (NEW.id, NEW.operation, NEW.attempt, NEW.token, NEW.holder, NEW.outcome_kind, CASE WHEN NEW.outcome_kind = 4 THEN CASE WHEN encode(substr(NEW.outcome, 1, 1), 'hex') = '01' THEN substr(NEW.outcome, 2, 8) WHEN encode(substr(NEW.outcome, 1, 1), 'hex') IN ('02', '03') THEN substr(NEW.outcome, length(NEW.outcome) - 39, 8) WHEN encode(substr(NEW.outcome, 1, 1), 'hex') IN ('06', '07') THEN substr(NEW.outcome, length(NEW.outcome) - 83, 8) END END, 'record', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, session_user, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' ELSE 'call' END, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, sha256(NEW.outcome)); END IF;
    IF TG_OP = 'UPDATE' AND (OLD.id IS DISTINCT FROM NEW.id OR OLD.operation IS DISTINCT FROM NEW.operation OR OLD.state IS DISTINCT FROM NEW.state OR OLD.token IS DISTINCT FROM NEW.token OR OLD.attempt_id IS DISTINCT FROM NEW.attempt_id OR OLD.outcome IS DISTINCT FROM NEW.outcome OR OLD.outcome_kind IS DISTINCT FROM NEW.outcome_kind OR OLD.outcome_schema IS DISTINCT FROM NEW.outcome_schema OR OLD.note_of IS DISTINCT FROM NEW.note_of AND (NEW.note_by IS NOT NULL OR OLD.note IS DISTINCT FROM NEW.note)) THEN INSERT INTO @schema@.idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_before, state_after, note, note_by, hash_before, outcome_hash) VALUES (NEW.id, NEW.operation, NEW.attempt, NEW.token, NEW.holder, NEW.outcome_kind, CASE WHEN NEW.outcome_kind = 4 THEN CASE WHEN encode(substr(NEW.outcome, 1, 1), 'hex') = '01' THEN substr(NEW.outcome, 2, 8) WHEN encode(substr(NEW.outcome, 1, 1), 'hex') IN ('02', '03') THEN substr(NEW.outcome, length(NEW.outcome) - 39, 8) WHEN encode(substr(NEW.outcome, 1, 1), 'hex') IN ('06', '07') THEN substr(NEW.outcome, length(NEW.outcome) - 83, 8) END END, 'record', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, session_user, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' WHEN OLD.state IN (1, 6) AND OLD.created = NEW.created AND OLD.attempt_id IS DISTINCT FROM NEW.attempt_id THEN 'takeover' WHEN (OLD.outcome IS DISTINCT FROM NEW.outcome OR OLD.outcome_kind IS DISTINCT FROM NEW.outcome_kind OR OLD.outcome_schema IS DISTINCT FROM NEW.outcome_schema) AND NOT (OLD.id IS DISTINCT FROM NEW.id OR OLD.operation IS DISTINCT FROM NEW.operation OR OLD.state IS DISTINCT FROM NEW.state OR OLD.token IS DISTINCT FROM NEW.token OR OLD.attempt_id IS DISTINCT FROM NEW.attempt_id) THEN 'rewritten' ELSE 'call' END, OLD.state, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, sha256(OLD.outcome), sha256(NEW.outcome)); END IF;
    IF TG_OP = 'DELETE' THEN INSERT INTO @schema@.idempotent_audit (record, operation, attempt, token, holder, outcome_kind, stream, source, written, db_user, kind, state_before, outcome_hash, forgettable) VALUES (OLD.id, OLD.operation, OLD.attempt, OLD.token, OLD.holder, OLD.outcome_kind, CASE WHEN OLD.outcome_kind = 4 THEN CASE WHEN encode(substr(OLD.outcome, 1, 1), 'hex') = '01' THEN substr(OLD.outcome, 2, 8) WHEN encode(substr(OLD.outcome, 1, 1), 'hex') IN ('02', '03') THEN substr(OLD.outcome, length(OLD.outcome) - 39, 8) WHEN encode(substr(OLD.outcome, 1, 1), 'hex') IN ('06', '07') THEN substr(OLD.outcome, length(OLD.outcome) - 83, 8) END END, 'record', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, session_user, 'deleted', OLD.state, sha256(OLD.outcome), CASE WHEN OLD.expires <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND (OLD.state IN (2, 3) OR OLD.state = 1 AND OLD.on_crash = 1 AND OLD.lease_end <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) THEN 1 ELSE 0 END); END IF;
    RETURN NULL;
END
$audit$$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$REVOKE ALL ON FUNCTION @schema@.idempotent_audit_record_writes() FROM PUBLIC$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE OR REPLACE FUNCTION @schema@.idempotent_audit_refuses() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $audit$
BEGIN
    RAISE EXCEPTION 'the audit refuses % of %', TG_OP, TG_TABLE_NAME;
END
$audit$$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$REVOKE ALL ON FUNCTION @schema@.idempotent_audit_refuses() FROM PUBLIC$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$DROP TRIGGER IF EXISTS idempotent_audit_record_writes ON @schema@.idempotent_records$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TRIGGER idempotent_audit_record_writes AFTER INSERT OR UPDATE OR DELETE ON @schema@.idempotent_records FOR EACH ROW EXECUTE FUNCTION @schema@.idempotent_audit_record_writes()$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$ALTER TABLE @schema@.idempotent_records ENABLE ALWAYS TRIGGER idempotent_audit_record_writes$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$DROP TRIGGER IF EXISTS idempotent_audit_record_truncate ON @schema@.idempotent_records$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TRIGGER idempotent_audit_record_truncate BEFORE TRUNCATE ON @schema@.idempotent_records FOR EACH STATEMENT EXECUTE FUNCTION @schema@.idempotent_audit_refuses()$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$ALTER TABLE @schema@.idempotent_records ENABLE ALWAYS TRIGGER idempotent_audit_record_truncate$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$INSERT INTO @schema@.idempotent_audit_schema (source, version, found) SELECT 'record', 1, 0 WHERE NOT EXISTS (SELECT 1 FROM @schema@.idempotent_audit_schema WHERE source = 'record')$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE OR REPLACE FUNCTION @schema@.idempotent_audit_step_writes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $audit$
BEGIN
    IF TG_OP = 'INSERT' THEN INSERT INTO @schema@.idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_after, note, note_by, outcome_hash) VALUES (NEW.record, NEW.name, NEW.label, NEW.outcome_kind, 'step', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, session_user, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' ELSE 'call' END, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, sha256(NEW.outcome)); END IF;
    IF TG_OP = 'UPDATE' AND (OLD.record IS DISTINCT FROM NEW.record OR OLD.name IS DISTINCT FROM NEW.name OR OLD.state IS DISTINCT FROM NEW.state OR OLD.attempt_id IS DISTINCT FROM NEW.attempt_id OR OLD.outcome IS DISTINCT FROM NEW.outcome OR OLD.outcome_kind IS DISTINCT FROM NEW.outcome_kind OR OLD.outcome_schema IS DISTINCT FROM NEW.outcome_schema OR OLD.note_of IS DISTINCT FROM NEW.note_of AND (NEW.note_by IS NOT NULL OR OLD.note IS DISTINCT FROM NEW.note)) THEN INSERT INTO @schema@.idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_before, state_after, note, note_by, hash_before, outcome_hash) VALUES (NEW.record, NEW.name, NEW.label, NEW.outcome_kind, 'step', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, session_user, CASE WHEN NEW.note_of = NEW.version AND NEW.note_by IS NOT NULL THEN 'operator' WHEN OLD.state = 1 AND OLD.attempt_id IS DISTINCT FROM NEW.attempt_id THEN 'takeover' WHEN (OLD.outcome IS DISTINCT FROM NEW.outcome OR OLD.outcome_kind IS DISTINCT FROM NEW.outcome_kind OR OLD.outcome_schema IS DISTINCT FROM NEW.outcome_schema) AND NOT (OLD.record IS DISTINCT FROM NEW.record OR OLD.name IS DISTINCT FROM NEW.name OR OLD.state IS DISTINCT FROM NEW.state OR OLD.attempt_id IS DISTINCT FROM NEW.attempt_id) THEN 'rewritten' ELSE 'call' END, OLD.state, NEW.state, CASE WHEN NEW.note_of = NEW.version THEN NEW.note END, CASE WHEN NEW.note_of = NEW.version THEN NEW.note_by END, sha256(OLD.outcome), sha256(NEW.outcome)); END IF;
    IF TG_OP = 'DELETE' THEN INSERT INTO @schema@.idempotent_audit (record, step, label, outcome_kind, source, written, db_user, kind, state_before, outcome_hash) VALUES (OLD.record, OLD.name, OLD.label, OLD.outcome_kind, 'step', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, session_user, 'deleted', OLD.state, sha256(OLD.outcome)); END IF;
    RETURN NULL;
END
$audit$$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$REVOKE ALL ON FUNCTION @schema@.idempotent_audit_step_writes() FROM PUBLIC$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE OR REPLACE FUNCTION @schema@.idempotent_audit_refuses() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $audit$
BEGIN
    RAISE EXCEPTION 'the audit refuses % of %', TG_OP, TG_TABLE_NAME;
END
$audit$$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$REVOKE ALL ON FUNCTION @schema@.idempotent_audit_refuses() FROM PUBLIC$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$DROP TRIGGER IF EXISTS idempotent_audit_step_writes ON @schema@.idempotent_steps$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TRIGGER idempotent_audit_step_writes AFTER INSERT OR UPDATE OR DELETE ON @schema@.idempotent_steps FOR EACH ROW EXECUTE FUNCTION @schema@.idempotent_audit_step_writes()$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$ALTER TABLE @schema@.idempotent_steps ENABLE ALWAYS TRIGGER idempotent_audit_step_writes$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$DROP TRIGGER IF EXISTS idempotent_audit_step_truncate ON @schema@.idempotent_steps$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TRIGGER idempotent_audit_step_truncate BEFORE TRUNCATE ON @schema@.idempotent_steps FOR EACH STATEMENT EXECUTE FUNCTION @schema@.idempotent_audit_refuses()$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$ALTER TABLE @schema@.idempotent_steps ENABLE ALWAYS TRIGGER idempotent_audit_step_truncate$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$INSERT INTO @schema@.idempotent_audit_schema (source, version, found) SELECT 'step', 1, 0 WHERE NOT EXISTS (SELECT 1 FROM @schema@.idempotent_audit_schema WHERE source = 'step')$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE OR REPLACE FUNCTION @schema@.idempotent_audit_event_writes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $audit$
BEGIN
    IF TG_OP = 'INSERT' THEN INSERT INTO @schema@.idempotent_audit (label, holder, note, note_by, source, written, db_user, kind) VALUES (NEW.event, NEW.holder, NEW.detail, NEW.person, 'event', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, session_user, 'event'); END IF;
    RETURN NULL;
END
$audit$$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$REVOKE ALL ON FUNCTION @schema@.idempotent_audit_event_writes() FROM PUBLIC$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE OR REPLACE FUNCTION @schema@.idempotent_audit_refuses() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $audit$
BEGIN
    RAISE EXCEPTION 'the audit refuses % of %', TG_OP, TG_TABLE_NAME;
END
$audit$$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$REVOKE ALL ON FUNCTION @schema@.idempotent_audit_refuses() FROM PUBLIC$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$DROP TRIGGER IF EXISTS idempotent_audit_event_writes ON @schema@.idempotent_audit_events$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TRIGGER idempotent_audit_event_writes AFTER INSERT ON @schema@.idempotent_audit_events FOR EACH ROW EXECUTE FUNCTION @schema@.idempotent_audit_event_writes()$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$ALTER TABLE @schema@.idempotent_audit_events ENABLE ALWAYS TRIGGER idempotent_audit_event_writes$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$DROP TRIGGER IF EXISTS idempotent_audit_event_truncate ON @schema@.idempotent_audit_events$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TRIGGER idempotent_audit_event_truncate BEFORE TRUNCATE ON @schema@.idempotent_audit_events FOR EACH STATEMENT EXECUTE FUNCTION @schema@.idempotent_audit_refuses()$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$ALTER TABLE @schema@.idempotent_audit_events ENABLE ALWAYS TRIGGER idempotent_audit_event_truncate$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$DROP TRIGGER IF EXISTS idempotent_audit_event_refuses ON @schema@.idempotent_audit_events$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$CREATE TRIGGER idempotent_audit_event_refuses BEFORE UPDATE OR DELETE ON @schema@.idempotent_audit_events FOR EACH ROW EXECUTE FUNCTION @schema@.idempotent_audit_refuses()$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$ALTER TABLE @schema@.idempotent_audit_events ENABLE ALWAYS TRIGGER idempotent_audit_event_refuses$made$, '@schema@.', place || '.'), '@schema@', place);
    EXECUTE replace(replace($made$INSERT INTO @schema@.idempotent_audit_schema (source, version, found) SELECT 'event', 1, 1 WHERE NOT EXISTS (SELECT 1 FROM @schema@.idempotent_audit_schema WHERE source = 'event')$made$, '@schema@.', place || '.'), '@schema@', place);
END
$script$;
