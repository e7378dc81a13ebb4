-- create, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7, 15, 16, 17, 18, 15, 14]
INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, COALESCE(GREATEST(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, ?, ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    IF(? = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0) - COALESCE(?, 0)))
             ON DUPLICATE KEY UPDATE state = golden_records.state + LAST_INSERT_ID(0 * golden_records.state)
-- replace, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 2, 7, 15, 16, 17, 18, 7, 15, 14, 15, 2, 15, 14, 0, 19]
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
                 purge_from = CASE WHEN ? IN (4, 5) THEN 9223372036854775807
                     WHEN ? IS NULL THEN purge_from
                     WHEN ? IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN ? IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - ?) END WHERE id = ? AND version = ?
-- write_step, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 5, 0, 13, 1]
INSERT INTO golden_steps (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, life)
         SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                held.created + 0 * LAST_INSERT_ID(1 + 0 * held.state)
         FROM golden_records AS held
         WHERE held.attempt_id = ? AND held.state IN (1, 4, 6) AND held.id = ? LOCK IN SHARE MODE
         ON DUPLICATE KEY UPDATE version = IF(LAST_INSERT_ID(IF(@idempotent_over := golden_steps.life <> VALUES(life)
                 OR COALESCE(golden_steps.version = ?, FALSE), 2, 3)) = 2, ?, golden_steps.version), label = IF(@idempotent_over, VALUES(label), golden_steps.label), state = IF(@idempotent_over, VALUES(state), golden_steps.state), attempt_id = IF(@idempotent_over, VALUES(attempt_id), golden_steps.attempt_id), on_crash = IF(@idempotent_over, VALUES(on_crash), golden_steps.on_crash), fingerprint = IF(@idempotent_over, VALUES(fingerprint), golden_steps.fingerprint), digests = IF(@idempotent_over, VALUES(digests), golden_steps.digests), outcome_kind = IF(@idempotent_over, VALUES(outcome_kind), golden_steps.outcome_kind), outcome_schema = IF(@idempotent_over, VALUES(outcome_schema), golden_steps.outcome_schema), outcome = IF(@idempotent_over, VALUES(outcome), golden_steps.outcome), undo_number = IF(@idempotent_over, VALUES(undo_number), golden_steps.undo_number), life = IF(@idempotent_over, VALUES(life), golden_steps.life)
