-- load
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1
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
-- finish
UPDATE golden_records SET version = ?2, operation = coalesce(?3, operation), scope = coalesce(?4, scope),
             call_key = coalesce(?5, call_key), fingerprint = coalesce(?6, fingerprint),
             digests = coalesce(?7, digests), state = ?8, attempt = ?10, attempt_id = ?11,
             holder = ?12, trace_parent = ?13, on_crash = ?14,
             outcome_kind = ?17, outcome_schema = ?18, outcome = ?19,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max(?9, now), token),
             coalesce(now + min(?15, 9223372036854775807 - now), lease_end),
             CASE WHEN ?3 IS NULL THEN created ELSE now END,
             CASE ?8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min(?16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = ?1 AND version = ?20 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + ?16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1 WHERE changes() = 0
-- purge
DELETE FROM golden_records WHERE rowid IN (
                 SELECT golden_records.rowid FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) CROSS JOIN golden_records
                 WHERE purge_from <= now - ?2 AND expires <= now - ?2
                   AND (state IN (2, 3)
                        OR state = 1 AND on_crash = 1 AND lease_end <= now)
                 LIMIT ?1)
             RETURNING id
-- scan
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id > ?1 ORDER BY id LIMIT ?2
-- load_steps
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, step.outcome, step.undo_number FROM golden_steps AS step
         JOIN golden_records ON id = record AND created = life
         WHERE record = ?1 AND name >= ?2 AND name <= ?3 ORDER BY name
-- list_steps
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, x'', step.undo_number FROM golden_steps AS step
         JOIN golden_records ON id = record AND created = life
         WHERE record = ?1 AND name >= ?2 AND name <= ?3 ORDER BY name
-- write_step
INSERT INTO golden_steps AS old (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, life)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, created FROM golden_records
         WHERE id = ?1 AND attempt_id = ?6 AND state IN (1, 4, 6)
         ON CONFLICT (record, name) DO UPDATE SET version = excluded.version, label = excluded.label, state = excluded.state, attempt_id = excluded.attempt_id, on_crash = excluded.on_crash, fingerprint = excluded.fingerprint, digests = excluded.digests, outcome_kind = excluded.outcome_kind, outcome_schema = excluded.outcome_schema, outcome = excluded.outcome, undo_number = excluded.undo_number, life = excluded.life
         WHERE old.life <> excluded.life OR old.version = ?14
         RETURNING 1
-- here
none
-- looks, 1 records, (0, 1)
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $1
-- looks, 2 records, (0, 1)
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $1; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $2
-- looks, 8 records, (0, 1)
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $1; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $2; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $3; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $4; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $5; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $6; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $7; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM golden_records WHERE id = $8
-- creates, 1 records, (1, 2)
BEGIN IMMEDIATE; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max($9, now), 0), $10, $11, $12, $13, $14,
                    now + coalesce(min($15, 9223372036854775807 - now), 0), now,
                    CASE $8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($16, 9223372036854775807 - now), 0), $17, $18, $19,
                    now + max(0, coalesce(min($16, 9223372036854775807 - now), 0) - coalesce($15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; COMMIT
-- creates, 2 records, (1, 2)
BEGIN IMMEDIATE; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max($9, now), 0), $10, $11, $12, $13, $14,
                    now + coalesce(min($15, 9223372036854775807 - now), 0), now,
                    CASE $8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($16, 9223372036854775807 - now), 0), $17, $18, $19,
                    now + max(0, coalesce(min($16, 9223372036854775807 - now), 0) - coalesce($15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $21, $22, $23, $24, $25, $26, $27, $28, coalesce(max($29, now), 0), $30, $31, $32, $33, $34,
                    now + coalesce(min($35, 9223372036854775807 - now), 0), now,
                    CASE $28 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($36, 9223372036854775807 - now), 0), $37, $38, $39,
                    now + max(0, coalesce(min($36, 9223372036854775807 - now), 0) - coalesce($35, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $21 WHERE changes() = 0; COMMIT
-- creates, 8 records, (1, 2)
BEGIN IMMEDIATE; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max($9, now), 0), $10, $11, $12, $13, $14,
                    now + coalesce(min($15, 9223372036854775807 - now), 0), now,
                    CASE $8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($16, 9223372036854775807 - now), 0), $17, $18, $19,
                    now + max(0, coalesce(min($16, 9223372036854775807 - now), 0) - coalesce($15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $21, $22, $23, $24, $25, $26, $27, $28, coalesce(max($29, now), 0), $30, $31, $32, $33, $34,
                    now + coalesce(min($35, 9223372036854775807 - now), 0), now,
                    CASE $28 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($36, 9223372036854775807 - now), 0), $37, $38, $39,
                    now + max(0, coalesce(min($36, 9223372036854775807 - now), 0) - coalesce($35, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $21 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $41, $42, $43, $44, $45, $46, $47, $48, coalesce(max($49, now), 0), $50, $51, $52, $53, $54,
                    now + coalesce(min($55, 9223372036854775807 - now), 0), now,
                    CASE $48 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($56, 9223372036854775807 - now), 0), $57, $58, $59,
                    now + max(0, coalesce(min($56, 9223372036854775807 - now), 0) - coalesce($55, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $41 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $61, $62, $63, $64, $65, $66, $67, $68, coalesce(max($69, now), 0), $70, $71, $72, $73, $74,
                    now + coalesce(min($75, 9223372036854775807 - now), 0), now,
                    CASE $68 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($76, 9223372036854775807 - now), 0), $77, $78, $79,
                    now + max(0, coalesce(min($76, 9223372036854775807 - now), 0) - coalesce($75, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $61 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $81, $82, $83, $84, $85, $86, $87, $88, coalesce(max($89, now), 0), $90, $91, $92, $93, $94,
                    now + coalesce(min($95, 9223372036854775807 - now), 0), now,
                    CASE $88 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($96, 9223372036854775807 - now), 0), $97, $98, $99,
                    now + max(0, coalesce(min($96, 9223372036854775807 - now), 0) - coalesce($95, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $81 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $101, $102, $103, $104, $105, $106, $107, $108, coalesce(max($109, now), 0), $110, $111, $112, $113, $114,
                    now + coalesce(min($115, 9223372036854775807 - now), 0), now,
                    CASE $108 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($116, 9223372036854775807 - now), 0), $117, $118, $119,
                    now + max(0, coalesce(min($116, 9223372036854775807 - now), 0) - coalesce($115, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $101 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $121, $122, $123, $124, $125, $126, $127, $128, coalesce(max($129, now), 0), $130, $131, $132, $133, $134,
                    now + coalesce(min($135, 9223372036854775807 - now), 0), now,
                    CASE $128 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($136, 9223372036854775807 - now), 0), $137, $138, $139,
                    now + max(0, coalesce(min($136, 9223372036854775807 - now), 0) - coalesce($135, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $121 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
             SELECT $141, $142, $143, $144, $145, $146, $147, $148, coalesce(max($149, now), 0), $150, $151, $152, $153, $154,
                    now + coalesce(min($155, 9223372036854775807 - now), 0), now,
                    CASE $148 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($156, 9223372036854775807 - now), 0), $157, $158, $159,
                    now + max(0, coalesce(min($156, 9223372036854775807 - now), 0) - coalesce($155, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $141 WHERE changes() = 0; COMMIT
-- finishes, 1 records, (1, 2)
BEGIN IMMEDIATE; UPDATE golden_records SET version = $2, operation = coalesce($3, operation), scope = coalesce($4, scope),
             call_key = coalesce($5, call_key), fingerprint = coalesce($6, fingerprint),
             digests = coalesce($7, digests), state = $8, attempt = $10, attempt_id = $11,
             holder = $12, trace_parent = $13, on_crash = $14,
             outcome_kind = $17, outcome_schema = $18, outcome = $19,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($9, now), token),
             coalesce(now + min($15, 9223372036854775807 - now), lease_end),
             CASE WHEN $3 IS NULL THEN created ELSE now END,
             CASE $8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $1 AND version = $20 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; COMMIT
-- finishes, 2 records, (1, 2)
BEGIN IMMEDIATE; UPDATE golden_records SET version = $2, operation = coalesce($3, operation), scope = coalesce($4, scope),
             call_key = coalesce($5, call_key), fingerprint = coalesce($6, fingerprint),
             digests = coalesce($7, digests), state = $8, attempt = $10, attempt_id = $11,
             holder = $12, trace_parent = $13, on_crash = $14,
             outcome_kind = $17, outcome_schema = $18, outcome = $19,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($9, now), token),
             coalesce(now + min($15, 9223372036854775807 - now), lease_end),
             CASE WHEN $3 IS NULL THEN created ELSE now END,
             CASE $8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $1 AND version = $20 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; UPDATE golden_records SET version = $22, operation = coalesce($23, operation), scope = coalesce($24, scope),
             call_key = coalesce($25, call_key), fingerprint = coalesce($26, fingerprint),
             digests = coalesce($27, digests), state = $28, attempt = $30, attempt_id = $31,
             holder = $32, trace_parent = $33, on_crash = $34,
             outcome_kind = $37, outcome_schema = $38, outcome = $39,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($29, now), token),
             coalesce(now + min($35, 9223372036854775807 - now), lease_end),
             CASE WHEN $23 IS NULL THEN created ELSE now END,
             CASE $28 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($36, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $21 AND version = $40 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $36 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $21 WHERE changes() = 0; COMMIT
-- finishes, 8 records, (1, 2)
BEGIN IMMEDIATE; UPDATE golden_records SET version = $2, operation = coalesce($3, operation), scope = coalesce($4, scope),
             call_key = coalesce($5, call_key), fingerprint = coalesce($6, fingerprint),
             digests = coalesce($7, digests), state = $8, attempt = $10, attempt_id = $11,
             holder = $12, trace_parent = $13, on_crash = $14,
             outcome_kind = $17, outcome_schema = $18, outcome = $19,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($9, now), token),
             coalesce(now + min($15, 9223372036854775807 - now), lease_end),
             CASE WHEN $3 IS NULL THEN created ELSE now END,
             CASE $8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $1 AND version = $20 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; UPDATE golden_records SET version = $22, operation = coalesce($23, operation), scope = coalesce($24, scope),
             call_key = coalesce($25, call_key), fingerprint = coalesce($26, fingerprint),
             digests = coalesce($27, digests), state = $28, attempt = $30, attempt_id = $31,
             holder = $32, trace_parent = $33, on_crash = $34,
             outcome_kind = $37, outcome_schema = $38, outcome = $39,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($29, now), token),
             coalesce(now + min($35, 9223372036854775807 - now), lease_end),
             CASE WHEN $23 IS NULL THEN created ELSE now END,
             CASE $28 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($36, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $21 AND version = $40 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $36 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $21 WHERE changes() = 0; UPDATE golden_records SET version = $42, operation = coalesce($43, operation), scope = coalesce($44, scope),
             call_key = coalesce($45, call_key), fingerprint = coalesce($46, fingerprint),
             digests = coalesce($47, digests), state = $48, attempt = $50, attempt_id = $51,
             holder = $52, trace_parent = $53, on_crash = $54,
             outcome_kind = $57, outcome_schema = $58, outcome = $59,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($49, now), token),
             coalesce(now + min($55, 9223372036854775807 - now), lease_end),
             CASE WHEN $43 IS NULL THEN created ELSE now END,
             CASE $48 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($56, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $41 AND version = $60 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $56 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $41 WHERE changes() = 0; UPDATE golden_records SET version = $62, operation = coalesce($63, operation), scope = coalesce($64, scope),
             call_key = coalesce($65, call_key), fingerprint = coalesce($66, fingerprint),
             digests = coalesce($67, digests), state = $68, attempt = $70, attempt_id = $71,
             holder = $72, trace_parent = $73, on_crash = $74,
             outcome_kind = $77, outcome_schema = $78, outcome = $79,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($69, now), token),
             coalesce(now + min($75, 9223372036854775807 - now), lease_end),
             CASE WHEN $63 IS NULL THEN created ELSE now END,
             CASE $68 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($76, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $61 AND version = $80 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $76 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $61 WHERE changes() = 0; UPDATE golden_records SET version = $82, operation = coalesce($83, operation), scope = coalesce($84, scope),
             call_key = coalesce($85, call_key), fingerprint = coalesce($86, fingerprint),
             digests = coalesce($87, digests), state = $88, attempt = $90, attempt_id = $91,
             holder = $92, trace_parent = $93, on_crash = $94,
             outcome_kind = $97, outcome_schema = $98, outcome = $99,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($89, now), token),
             coalesce(now + min($95, 9223372036854775807 - now), lease_end),
             CASE WHEN $83 IS NULL THEN created ELSE now END,
             CASE $88 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($96, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $81 AND version = $100 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $96 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $81 WHERE changes() = 0; UPDATE golden_records SET version = $102, operation = coalesce($103, operation), scope = coalesce($104, scope),
             call_key = coalesce($105, call_key), fingerprint = coalesce($106, fingerprint),
             digests = coalesce($107, digests), state = $108, attempt = $110, attempt_id = $111,
             holder = $112, trace_parent = $113, on_crash = $114,
             outcome_kind = $117, outcome_schema = $118, outcome = $119,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($109, now), token),
             coalesce(now + min($115, 9223372036854775807 - now), lease_end),
             CASE WHEN $103 IS NULL THEN created ELSE now END,
             CASE $108 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($116, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $101 AND version = $120 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $116 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $101 WHERE changes() = 0; UPDATE golden_records SET version = $122, operation = coalesce($123, operation), scope = coalesce($124, scope),
             call_key = coalesce($125, call_key), fingerprint = coalesce($126, fingerprint),
             digests = coalesce($127, digests), state = $128, attempt = $130, attempt_id = $131,
             holder = $132, trace_parent = $133, on_crash = $134,
             outcome_kind = $137, outcome_schema = $138, outcome = $139,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($129, now), token),
             coalesce(now + min($135, 9223372036854775807 - now), lease_end),
             CASE WHEN $123 IS NULL THEN created ELSE now END,
             CASE $128 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($136, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $121 AND version = $140 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $136 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $121 WHERE changes() = 0; UPDATE golden_records SET version = $142, operation = coalesce($143, operation), scope = coalesce($144, scope),
             call_key = coalesce($145, call_key), fingerprint = coalesce($146, fingerprint),
             digests = coalesce($147, digests), state = $148, attempt = $150, attempt_id = $151,
             holder = $152, trace_parent = $153, on_crash = $154,
             outcome_kind = $157, outcome_schema = $158, outcome = $159,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max($149, now), token),
             coalesce(now + min($155, 9223372036854775807 - now), lease_end),
             CASE WHEN $143 IS NULL THEN created ELSE now END,
             CASE $148 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($156, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $141 AND version = $160 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $156 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome FROM (SELECT 1) LEFT JOIN golden_records ON id = $141 WHERE changes() = 0; COMMIT
