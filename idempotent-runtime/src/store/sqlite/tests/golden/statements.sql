-- load
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1
-- create
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = ?1
             UNION ALL SELECT abs(-9223372036854775808 + 0 * rowid), 0, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = ?1;
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(max(?9, now), 0), ?10, ?11, ?12, ?13, ?14,
                    now + coalesce(min(?15, 9223372036854775807 - now), 0), now,
                    CASE ?8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min(?16, 9223372036854775807 - now), 0), ?17, ?18, ?19, ?20, ?21, ?22,
                    now + max(0, coalesce(min(?16, 9223372036854775807 - now), 0) - coalesce(?15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1 WHERE changes() = 0
-- replace
UPDATE golden_records SET operation = coalesce(?3, operation), scope = coalesce(?4, scope),
             call_key = coalesce(?5, call_key), fingerprint = coalesce(?6, fingerprint),
             digests = coalesce(?7, digests), version = ?2, state = ?8, attempt = ?10, attempt_id = ?11, holder = ?12, trace_parent = ?13,
             on_crash = ?14, outcome_kind = ?17, outcome_schema = ?18, outcome = ?19,
             note = ?20, note_by = ?21, note_of = ?22,
                    (token, lease_end, finished, expires, created, purge_from) = (
                        SELECT coalesce(max(?9, now), token),
             coalesce(now + min(?15, 9223372036854775807 - now), lease_end),
             CASE ?8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min(?16, 9223372036854775807 - now), expires), CASE WHEN ?3 IS NULL THEN created ELSE now END,
                               CASE WHEN ?8 IN (4, 5, 6) THEN 9223372036854775807
                               ELSE coalesce(now + max(0, min(?16, 9223372036854775807 - now) - coalesce(?15, 0)), min(purge_from, expires)) END
                        FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = ?1 AND version = ?23 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1 WHERE changes() = 0
-- finish
UPDATE golden_records SET version = ?2, state = ?8, attempt = ?10, attempt_id = ?11, holder = ?12, trace_parent = ?13,
             on_crash = ?14, outcome_kind = ?17, outcome_schema = ?18, outcome = ?19,
             note = ?20, note_by = ?21, note_of = ?22,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max(?9, now), token),
             coalesce(now + min(?15, 9223372036854775807 - now), lease_end),
             CASE ?8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min(?16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = ?1 AND version = ?23 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + ?16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = ?1 WHERE changes() = 0
-- purge
DELETE FROM golden_records WHERE rowid IN (
                 SELECT golden_records.rowid FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) CROSS JOIN golden_records
                 WHERE purge_from <= now - ?2 AND expires <= now - ?2
                   AND (state IN (2, 3)
                        OR state = 1 AND on_crash = 1 AND lease_end <= now)
                 LIMIT ?1)
             RETURNING id
-- scan
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id > ?1 ORDER BY id LIMIT ?2
-- load_steps
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, step.outcome, step.undo_number, step.note, step.note_by, step.note_of FROM golden_steps AS step
         JOIN golden_records ON id = record AND created = life
         WHERE record = ?1 AND name >= ?2 AND name <= ?3 ORDER BY name
-- list_steps
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, x'', step.undo_number, step.note, step.note_by, step.note_of FROM golden_steps AS step
         JOIN golden_records ON id = record AND created = life
         WHERE record = ?1 AND name >= ?2 AND name <= ?3 ORDER BY name
-- write_step
INSERT INTO golden_steps AS old (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, note, note_by, note_of, life)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, created FROM golden_records
         WHERE id = ?1 AND attempt_id = ?6 AND state IN (1, 4, 6)
         ON CONFLICT (record, name) DO UPDATE SET version = excluded.version, label = excluded.label, state = excluded.state, attempt_id = excluded.attempt_id, on_crash = excluded.on_crash, fingerprint = excluded.fingerprint, digests = excluded.digests, outcome_kind = excluded.outcome_kind, outcome_schema = excluded.outcome_schema, outcome = excluded.outcome, undo_number = excluded.undo_number, note = excluded.note, note_by = excluded.note_by, note_of = excluded.note_of, life = excluded.life
         WHERE old.life <> excluded.life OR old.version = ?17
         RETURNING 1
-- here
none
-- looks, 1 records, (0, 1)
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $1
-- looks, 2 records, (0, 1)
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $1; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $2
-- looks, 8 records, (0, 1)
SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $1; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $2; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $3; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $4; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $5; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $6; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $7; SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM golden_records WHERE id = $8
-- creates, 1 records, (1, 2)
BEGIN IMMEDIATE; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max($9, now), 0), $10, $11, $12, $13, $14,
                    now + coalesce(min($15, 9223372036854775807 - now), 0), now,
                    CASE $8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($16, 9223372036854775807 - now), 0), $17, $18, $19, $20, $21, $22,
                    now + max(0, coalesce(min($16, 9223372036854775807 - now), 0) - coalesce($15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; COMMIT
-- creates, 2 records, (1, 2)
BEGIN IMMEDIATE; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max($9, now), 0), $10, $11, $12, $13, $14,
                    now + coalesce(min($15, 9223372036854775807 - now), 0), now,
                    CASE $8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($16, 9223372036854775807 - now), 0), $17, $18, $19, $20, $21, $22,
                    now + max(0, coalesce(min($16, 9223372036854775807 - now), 0) - coalesce($15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $24, $25, $26, $27, $28, $29, $30, $31, coalesce(max($32, now), 0), $33, $34, $35, $36, $37,
                    now + coalesce(min($38, 9223372036854775807 - now), 0), now,
                    CASE $31 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($39, 9223372036854775807 - now), 0), $40, $41, $42, $43, $44, $45,
                    now + max(0, coalesce(min($39, 9223372036854775807 - now), 0) - coalesce($38, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $24 WHERE changes() = 0; COMMIT
-- creates, 8 records, (1, 2)
BEGIN IMMEDIATE; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max($9, now), 0), $10, $11, $12, $13, $14,
                    now + coalesce(min($15, 9223372036854775807 - now), 0), now,
                    CASE $8 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($16, 9223372036854775807 - now), 0), $17, $18, $19, $20, $21, $22,
                    now + max(0, coalesce(min($16, 9223372036854775807 - now), 0) - coalesce($15, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $24, $25, $26, $27, $28, $29, $30, $31, coalesce(max($32, now), 0), $33, $34, $35, $36, $37,
                    now + coalesce(min($38, 9223372036854775807 - now), 0), now,
                    CASE $31 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($39, 9223372036854775807 - now), 0), $40, $41, $42, $43, $44, $45,
                    now + max(0, coalesce(min($39, 9223372036854775807 - now), 0) - coalesce($38, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $24 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $47, $48, $49, $50, $51, $52, $53, $54, coalesce(max($55, now), 0), $56, $57, $58, $59, $60,
                    now + coalesce(min($61, 9223372036854775807 - now), 0), now,
                    CASE $54 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($62, 9223372036854775807 - now), 0), $63, $64, $65, $66, $67, $68,
                    now + max(0, coalesce(min($62, 9223372036854775807 - now), 0) - coalesce($61, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $47 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $70, $71, $72, $73, $74, $75, $76, $77, coalesce(max($78, now), 0), $79, $80, $81, $82, $83,
                    now + coalesce(min($84, 9223372036854775807 - now), 0), now,
                    CASE $77 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($85, 9223372036854775807 - now), 0), $86, $87, $88, $89, $90, $91,
                    now + max(0, coalesce(min($85, 9223372036854775807 - now), 0) - coalesce($84, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $70 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $93, $94, $95, $96, $97, $98, $99, $100, coalesce(max($101, now), 0), $102, $103, $104, $105, $106,
                    now + coalesce(min($107, 9223372036854775807 - now), 0), now,
                    CASE $100 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($108, 9223372036854775807 - now), 0), $109, $110, $111, $112, $113, $114,
                    now + max(0, coalesce(min($108, 9223372036854775807 - now), 0) - coalesce($107, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $93 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $116, $117, $118, $119, $120, $121, $122, $123, coalesce(max($124, now), 0), $125, $126, $127, $128, $129,
                    now + coalesce(min($130, 9223372036854775807 - now), 0), now,
                    CASE $123 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($131, 9223372036854775807 - now), 0), $132, $133, $134, $135, $136, $137,
                    now + max(0, coalesce(min($131, 9223372036854775807 - now), 0) - coalesce($130, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $116 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $139, $140, $141, $142, $143, $144, $145, $146, coalesce(max($147, now), 0), $148, $149, $150, $151, $152,
                    now + coalesce(min($153, 9223372036854775807 - now), 0), now,
                    CASE $146 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($154, 9223372036854775807 - now), 0), $155, $156, $157, $158, $159, $160,
                    now + max(0, coalesce(min($154, 9223372036854775807 - now), 0) - coalesce($153, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $139 WHERE changes() = 0; 
             INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT $162, $163, $164, $165, $166, $167, $168, $169, coalesce(max($170, now), 0), $171, $172, $173, $174, $175,
                    now + coalesce(min($176, 9223372036854775807 - now), 0), now,
                    CASE $169 WHEN 1 THEN NULL ELSE now END,
                    now + coalesce(min($177, 9223372036854775807 - now), 0), $178, $179, $180, $181, $182, $183,
                    now + max(0, coalesce(min($177, 9223372036854775807 - now), 0) - coalesce($176, 0))
             FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $162 WHERE changes() = 0; COMMIT
-- finishes, 1 records, (1, 2)
BEGIN IMMEDIATE; UPDATE golden_records SET version = $2, state = $8, attempt = $10, attempt_id = $11, holder = $12, trace_parent = $13,
             on_crash = $14, outcome_kind = $17, outcome_schema = $18, outcome = $19,
             note = $20, note_by = $21, note_of = $22,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($9, now), token),
             coalesce(now + min($15, 9223372036854775807 - now), lease_end),
             CASE $8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $1 AND version = $23 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; COMMIT
-- finishes, 2 records, (1, 2)
BEGIN IMMEDIATE; UPDATE golden_records SET version = $2, state = $8, attempt = $10, attempt_id = $11, holder = $12, trace_parent = $13,
             on_crash = $14, outcome_kind = $17, outcome_schema = $18, outcome = $19,
             note = $20, note_by = $21, note_of = $22,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($9, now), token),
             coalesce(now + min($15, 9223372036854775807 - now), lease_end),
             CASE $8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $1 AND version = $23 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; UPDATE golden_records SET version = $25, state = $31, attempt = $33, attempt_id = $34, holder = $35, trace_parent = $36,
             on_crash = $37, outcome_kind = $40, outcome_schema = $41, outcome = $42,
             note = $43, note_by = $44, note_of = $45,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($32, now), token),
             coalesce(now + min($38, 9223372036854775807 - now), lease_end),
             CASE $31 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($39, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $24 AND version = $46 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $39 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $24 WHERE changes() = 0; COMMIT
-- finishes, 8 records, (1, 2)
BEGIN IMMEDIATE; UPDATE golden_records SET version = $2, state = $8, attempt = $10, attempt_id = $11, holder = $12, trace_parent = $13,
             on_crash = $14, outcome_kind = $17, outcome_schema = $18, outcome = $19,
             note = $20, note_by = $21, note_of = $22,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($9, now), token),
             coalesce(now + min($15, 9223372036854775807 - now), lease_end),
             CASE $8 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($16, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $1 AND version = $23 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $16 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $1 WHERE changes() = 0; UPDATE golden_records SET version = $25, state = $31, attempt = $33, attempt_id = $34, holder = $35, trace_parent = $36,
             on_crash = $37, outcome_kind = $40, outcome_schema = $41, outcome = $42,
             note = $43, note_by = $44, note_of = $45,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($32, now), token),
             coalesce(now + min($38, 9223372036854775807 - now), lease_end),
             CASE $31 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($39, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $24 AND version = $46 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $39 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $24 WHERE changes() = 0; UPDATE golden_records SET version = $48, state = $54, attempt = $56, attempt_id = $57, holder = $58, trace_parent = $59,
             on_crash = $60, outcome_kind = $63, outcome_schema = $64, outcome = $65,
             note = $66, note_by = $67, note_of = $68,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($55, now), token),
             coalesce(now + min($61, 9223372036854775807 - now), lease_end),
             CASE $54 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($62, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $47 AND version = $69 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $62 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $47 WHERE changes() = 0; UPDATE golden_records SET version = $71, state = $77, attempt = $79, attempt_id = $80, holder = $81, trace_parent = $82,
             on_crash = $83, outcome_kind = $86, outcome_schema = $87, outcome = $88,
             note = $89, note_by = $90, note_of = $91,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($78, now), token),
             coalesce(now + min($84, 9223372036854775807 - now), lease_end),
             CASE $77 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($85, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $70 AND version = $92 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $85 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $70 WHERE changes() = 0; UPDATE golden_records SET version = $94, state = $100, attempt = $102, attempt_id = $103, holder = $104, trace_parent = $105,
             on_crash = $106, outcome_kind = $109, outcome_schema = $110, outcome = $111,
             note = $112, note_by = $113, note_of = $114,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($101, now), token),
             coalesce(now + min($107, 9223372036854775807 - now), lease_end),
             CASE $100 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($108, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $93 AND version = $115 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $108 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $93 WHERE changes() = 0; UPDATE golden_records SET version = $117, state = $123, attempt = $125, attempt_id = $126, holder = $127, trace_parent = $128,
             on_crash = $129, outcome_kind = $132, outcome_schema = $133, outcome = $134,
             note = $135, note_by = $136, note_of = $137,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($124, now), token),
             coalesce(now + min($130, 9223372036854775807 - now), lease_end),
             CASE $123 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($131, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $116 AND version = $138 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $131 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $116 WHERE changes() = 0; UPDATE golden_records SET version = $140, state = $146, attempt = $148, attempt_id = $149, holder = $150, trace_parent = $151,
             on_crash = $152, outcome_kind = $155, outcome_schema = $156, outcome = $157,
             note = $158, note_by = $159, note_of = $160,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($147, now), token),
             coalesce(now + min($153, 9223372036854775807 - now), lease_end),
             CASE $146 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($154, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $139 AND version = $161 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $154 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $139 WHERE changes() = 0; UPDATE golden_records SET version = $163, state = $169, attempt = $171, attempt_id = $172, holder = $173, trace_parent = $174,
             on_crash = $175, outcome_kind = $178, outcome_schema = $179, outcome = $180,
             note = $181, note_by = $182, note_of = $183,
                    (token, lease_end, finished, expires) = (
                        SELECT coalesce(max($170, now), token),
             coalesce(now + min($176, 9223372036854775807 - now), lease_end),
             CASE $169 WHEN 1 THEN NULL ELSE now END,
             coalesce(now + min($177, 9223372036854775807 - now), expires) FROM (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 AS now))
             WHERE id = $162 AND version = $184 AND purge_from <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + $177 RETURNING 1, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, token, lease_end, expires;
             SELECT 0, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of FROM (SELECT 1) LEFT JOIN golden_records ON id = $162 WHERE changes() = 0; COMMIT
