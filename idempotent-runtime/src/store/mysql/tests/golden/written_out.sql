-- create
INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, COALESCE(GREATEST(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, x'', ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    IF(? = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0), ?, ?, ?, ?, ?, ?,
                    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, COALESCE(LEAST(?, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), 0) - COALESCE(?, 0)))
             ON DUPLICATE KEY UPDATE state = golden_records.state + LAST_INSERT_ID(0 * golden_records.state)
-- replace
UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, ?), operation = COALESCE(?, operation),
                 scope = COALESCE(?, scope), call_key = COALESCE(?, call_key),
                 fingerprint = COALESCE(?, fingerprint), digests = COALESCE(?, digests),
                 state = ?, token = COALESCE(GREATEST(?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = ?, attempt_id = ?, holder = x'', trace_parent = ?, on_crash = ?,
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
