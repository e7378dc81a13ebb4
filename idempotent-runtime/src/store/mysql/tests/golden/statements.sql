-- load, [0]
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) AS one LEFT JOIN golden_records ON id = ?
-- load_locked, [0]
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) AS one LEFT JOIN golden_records ON id = ? FOR UPDATE
-- load_shared, [0]
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) AS one LEFT JOIN golden_records ON id = ? LOCK IN SHARE MODE
-- again, [0, 1, 2]
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), outcome FROM golden_records
             WHERE id = ? AND version = ? AND state = 2 AND expires = ?
-- create, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7, 15, 16, 17, 18, 19, 20, 21, 15, 14]
INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, COALESCE(GREATEST(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, ?, ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    IF(? = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, ?, ?, ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0) - COALESCE(?, 0)))
             ON DUPLICATE KEY UPDATE state = golden_records.state + LAST_INSERT_ID(0 * golden_records.state)
-- create_and_show, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7, 15, 16, 17, 18, 19, 20, 21, 15, 14]
INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, COALESCE(GREATEST(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, ?, ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    IF(? = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, ?, ?, ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0) - COALESCE(?, 0)))
             ON DUPLICATE KEY UPDATE state = golden_records.state + LAST_INSERT_ID(0 * golden_records.state) RETURNING version, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
-- replace, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2, 7, 15, 16, 17, 18, 19, 20, 21, 7, 15, 14, 15, 2, 15, 14, 0, 22]
UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, ?), operation = COALESCE(?, operation),
                 scope = COALESCE(?, scope), call_key = COALESCE(?, call_key),
                 fingerprint = COALESCE(?, fingerprint), digests = COALESCE(?, digests),
                 state = ?, token = COALESCE(GREATEST(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = ?, attempt_id = ?, holder = ?, trace_parent = ?, on_crash = ?,
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(? IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF(? = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = ?, outcome_schema = ?, outcome = ?,
                 note = ?, note_by = ?, note_of = ?,
                 purge_from = CASE WHEN ? IN (4, 5, 6) THEN 9223372036854775807
                     WHEN ? IS NULL THEN purge_from
                     WHEN ? IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN ? IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - ?) END WHERE id = ? AND version = ?
-- complete, [1, 3, 4, 5, 6, 3, 0, 2]
UPDATE golden_records SET
                 version = ?, state = 2, finished = LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state),
                 expires = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 outcome_kind = ?, outcome_schema = ?, outcome = ?,
                 purge_from = LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
             WHERE id = ? AND version = ?
-- replace_and_show, [0, 22, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2, 7, 15, 16, 17, 18, 19, 20, 21, 7, 15, 14, 15, 2, 15, 14]
INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, NULL, note, note_by, note_of, purge_from FROM golden_records AS seen WHERE id = ? AND version = ? FOR UPDATE
             ON DUPLICATE KEY UPDATE version = ?, operation = COALESCE(?, golden_records.operation),
                 scope = COALESCE(?, golden_records.scope), call_key = COALESCE(?, golden_records.call_key),
                 fingerprint = COALESCE(?, golden_records.fingerprint), digests = COALESCE(?, golden_records.digests),
                 state = ?, token = COALESCE(GREATEST(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), golden_records.token),
                 attempt = ?, attempt_id = ?, holder = ?, trace_parent = ?, on_crash = ?,
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), golden_records.lease_end),
                 created = IF(? IS NULL, golden_records.created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF(? = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), golden_records.expires),
                 outcome_kind = ?, outcome_schema = ?, outcome = ?,
                 note = ?, note_by = ?, note_of = ?,
                 purge_from = CASE WHEN ? IN (4, 5, 6) THEN 9223372036854775807
                     WHEN ? IS NULL THEN golden_records.purge_from
                     WHEN ? IS NULL THEN LEAST(golden_records.purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN ? IS NULL AND golden_records.purge_from < 9223372036854775807 THEN golden_records.purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - ?) END
             RETURNING TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), token, lease_end, expires
-- expired, [1, 1, 0]
SELECT id FROM golden_records FORCE INDEX (golden_records_purge)
             WHERE purge_from <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - ? AND expires <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - ?
               AND (state IN (2, 3)
                    OR state = 1 AND on_crash = 1 AND lease_end <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))
             ORDER BY purge_from LIMIT ? FOR UPDATE SKIP LOCKED
-- scan, [0, 1]
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id > ? ORDER BY id LIMIT ?
-- load_steps, [0, 1, 2]
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, step.outcome, step.undo_number, step.note, step.note_by, step.note_of FROM golden_steps AS step
         JOIN golden_records AS record ON record.id = step.record AND record.created = step.life
         WHERE step.record = ? AND step.name >= ? AND step.name <= ? ORDER BY step.name
-- list_steps, [0, 1, 2]
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, '', step.undo_number, step.note, step.note_by, step.note_of FROM golden_steps AS step
         JOIN golden_records AS record ON record.id = step.record AND record.created = step.life
         WHERE step.record = ? AND step.name >= ? AND step.name <= ? ORDER BY step.name
-- write_step, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 5, 0, 16, 1]
INSERT INTO golden_steps (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, note, note_by, note_of, life)
         SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                held.created + 0 * LAST_INSERT_ID(1 + 0 * held.state)
         FROM golden_records AS held
         WHERE held.attempt_id = ? AND held.state IN (1, 4, 6) AND held.id = ? LOCK IN SHARE MODE
         ON DUPLICATE KEY UPDATE version = IF(LAST_INSERT_ID(IF(@idempotent_over := golden_steps.life <> VALUES(life)
                 OR COALESCE(golden_steps.version = ?, FALSE), 2, 3)) = 2, ?, golden_steps.version), label = IF(@idempotent_over, VALUES(label), golden_steps.label), state = IF(@idempotent_over, VALUES(state), golden_steps.state), attempt_id = IF(@idempotent_over, VALUES(attempt_id), golden_steps.attempt_id), on_crash = IF(@idempotent_over, VALUES(on_crash), golden_steps.on_crash), fingerprint = IF(@idempotent_over, VALUES(fingerprint), golden_steps.fingerprint), digests = IF(@idempotent_over, VALUES(digests), golden_steps.digests), outcome_kind = IF(@idempotent_over, VALUES(outcome_kind), golden_steps.outcome_kind), outcome_schema = IF(@idempotent_over, VALUES(outcome_schema), golden_steps.outcome_schema), outcome = IF(@idempotent_over, VALUES(outcome), golden_steps.outcome), undo_number = IF(@idempotent_over, VALUES(undo_number), golden_steps.undo_number), note = IF(@idempotent_over, VALUES(note), golden_steps.note), note_by = IF(@idempotent_over, VALUES(note_by), golden_steps.note_by), note_of = IF(@idempotent_over, VALUES(note_of), golden_steps.note_of), life = IF(@idempotent_over, VALUES(life), golden_steps.life)
-- write_step_and_show, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 5, 0, 16, 1]
INSERT INTO golden_steps (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, note, note_by, note_of, life)
         SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                held.created + 0 * LAST_INSERT_ID(1 + 0 * held.state)
         FROM golden_records AS held
         WHERE held.attempt_id = ? AND held.state IN (1, 4, 6) AND held.id = ? LOCK IN SHARE MODE
         ON DUPLICATE KEY UPDATE version = IF(LAST_INSERT_ID(IF(@idempotent_over := golden_steps.life <> VALUES(life)
                 OR COALESCE(golden_steps.version = ?, FALSE), 2, 3)) = 2, ?, golden_steps.version), label = IF(@idempotent_over, VALUES(label), golden_steps.label), state = IF(@idempotent_over, VALUES(state), golden_steps.state), attempt_id = IF(@idempotent_over, VALUES(attempt_id), golden_steps.attempt_id), on_crash = IF(@idempotent_over, VALUES(on_crash), golden_steps.on_crash), fingerprint = IF(@idempotent_over, VALUES(fingerprint), golden_steps.fingerprint), digests = IF(@idempotent_over, VALUES(digests), golden_steps.digests), outcome_kind = IF(@idempotent_over, VALUES(outcome_kind), golden_steps.outcome_kind), outcome_schema = IF(@idempotent_over, VALUES(outcome_schema), golden_steps.outcome_schema), outcome = IF(@idempotent_over, VALUES(outcome), golden_steps.outcome), undo_number = IF(@idempotent_over, VALUES(undo_number), golden_steps.undo_number), note = IF(@idempotent_over, VALUES(note), golden_steps.note), note_by = IF(@idempotent_over, VALUES(note_by), golden_steps.note_by), note_of = IF(@idempotent_over, VALUES(note_of), golden_steps.note_of), life = IF(@idempotent_over, VALUES(life), golden_steps.life) RETURNING version, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
-- begin_step, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 5, 0, 16, 1]
INSERT INTO golden_steps (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, note, note_by, note_of, life)
         SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                held.created + 0 * LAST_INSERT_ID(1 + 0 * held.state)
         FROM golden_records AS held
         WHERE held.attempt_id = ? AND held.state IN (1, 4, 6) AND held.id = ? 
         ON DUPLICATE KEY UPDATE version = IF(LAST_INSERT_ID(IF(@idempotent_over := golden_steps.life <> VALUES(life)
                 OR COALESCE(golden_steps.version = ?, FALSE), 2, 3)) = 2, ?, golden_steps.version), label = IF(@idempotent_over, VALUES(label), golden_steps.label), state = IF(@idempotent_over, VALUES(state), golden_steps.state), attempt_id = IF(@idempotent_over, VALUES(attempt_id), golden_steps.attempt_id), on_crash = IF(@idempotent_over, VALUES(on_crash), golden_steps.on_crash), fingerprint = IF(@idempotent_over, VALUES(fingerprint), golden_steps.fingerprint), digests = IF(@idempotent_over, VALUES(digests), golden_steps.digests), outcome_kind = IF(@idempotent_over, VALUES(outcome_kind), golden_steps.outcome_kind), outcome_schema = IF(@idempotent_over, VALUES(outcome_schema), golden_steps.outcome_schema), outcome = IF(@idempotent_over, VALUES(outcome), golden_steps.outcome), undo_number = IF(@idempotent_over, VALUES(undo_number), golden_steps.undo_number), note = IF(@idempotent_over, VALUES(note), golden_steps.note), note_by = IF(@idempotent_over, VALUES(note_by), golden_steps.note_by), note_of = IF(@idempotent_over, VALUES(note_of), golden_steps.note_of), life = IF(@idempotent_over, VALUES(life), golden_steps.life)
-- table
golden_records
-- steps
golden_steps
