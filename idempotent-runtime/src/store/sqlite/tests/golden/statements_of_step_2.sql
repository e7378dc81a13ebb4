-- create
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = ?1
             UNION ALL SELECT abs(-9223372036854775808 + 0 * rowid), 0, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = ?1;
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(max(?9, now), 0), ?10, ?11, ?12, ?13, ?14,
                    now + coalesce(min(?15, 9223372036854775807 - now), 0), now,
                    CASE ?8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min(?16, 9223372036854775807 - now), 0), ?17, ?18, ?19,
                    now + max(0, coalesce(min(?16, 9223372036854775807 - now), 0) - coalesce(?15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1 WHERE changes() = 0
-- replace
UPDATE golden_records SET version = ?2, operation = coalesce(?3, operation), scope = coalesce(?4, scope),
             call_key = coalesce(?5, call_key), fingerprint = coalesce(?6, fingerprint),
             digests = coalesce(?7, digests), state = ?8, attempt = ?10, attempt_id = ?11,
             holder = ?12, trace_parent = ?13, on_crash = ?14,
             outcome_kind = ?17, outcome_schema = ?18, outcome = ?19,
                    (token, lease_end, created, finished, expires, purge_from) = (
                        SELECT coalesce(max(?9, now), token),
             coalesce(now + min(?15, 9223372036854775807 - now), lease_end),
             CASE WHEN ?3 IS NULL THEN created ELSE now END,
             CASE ?8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min(?16, 9223372036854775807 - now), expires),
                               CASE WHEN ?8 IN (4, 5) THEN 9223372036854775807
                               ELSE coalesce(now + max(0, min(?16, 9223372036854775807 - now) - coalesce(?15, 0)), min(purge_from, expires)) END
                        FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = ?1 AND version = ?20 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1 WHERE changes() = 0
-- write_step
INSERT INTO golden_steps AS old (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, life)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, created FROM golden_records
         WHERE id = ?1 AND attempt_id = ?6 AND state IN (1, 4, 6)
         ON CONFLICT (record, name) DO UPDATE SET version = excluded.version, label = excluded.label, state = excluded.state, attempt_id = excluded.attempt_id, on_crash = excluded.on_crash, fingerprint = excluded.fingerprint, digests = excluded.digests, outcome_kind = excluded.outcome_kind, outcome_schema = excluded.outcome_schema, outcome = excluded.outcome, undo_number = excluded.undo_number, life = excluded.life
         WHERE old.life <> excluded.life OR old.version = ?14
         RETURNING 1
