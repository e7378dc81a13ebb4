-- protocol
Simple
-- load, 7912870922703338023
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now)
             SELECT 0::bigint, clock.now, NULL::bigint, NULL::bigint, NULL::bigint, CASE WHEN id IS NOT NULL THEN record_send(ROW(id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of)) END, 7912870922703338023::bigint
             FROM clock LEFT JOIN golden_records ON id = $1::bytea
-- again, 6790219881426802825
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, outcome, 6790219881426802825::bigint FROM golden_records
             WHERE id = $1::bytea AND version = $2::bytea AND state = 2 AND expires = $3::bigint
-- create, 513957848776080704
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), claimed AS (
                 INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
                 SELECT $1::bytea, $2::bytea, $3::text, $4::bytea, $5::bytea, $6::bytea, $7::bytea, $8::bigint,
                        CASE WHEN $9::bigint IS NULL THEN 0 ELSE greatest($9::bigint, now) END, $10::bigint, $11::bytea, $12::text, $13::text,
                        $14::bigint, now + least(coalesce($15::bigint, 0), 9223372036854775807 - now), now,
                        CASE WHEN $8::bigint = 1 THEN NULL ELSE now END,
                        now + least(coalesce($16::bigint, 0), 9223372036854775807 - now), $17::bigint, $18::bigint, $19::bytea, $20::text, $21::text, $22::bytea,
                        now + greatest(0, least(coalesce($16::bigint, 0), 9223372036854775807 - now) - coalesce($15::bigint, 0))
                 FROM clock WHERE EXISTS (SELECT store FROM golden_schema WHERE version = 1 AND store = '0123456789abcdef0123456789abcdef')
                 ON CONFLICT (id) DO NOTHING
                 RETURNING created, token, lease_end, expires)
             SELECT 1::bigint, created, token, lease_end, expires, NULL::bytea, 513957848776080704::bigint FROM claimed
             UNION ALL
             SELECT 0::bigint, clock.now, NULL::bigint, NULL::bigint, NULL::bigint, record_send(ROW(id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of)), 513957848776080704::bigint FROM clock, golden_records
             WHERE id = $1::bytea AND NOT EXISTS (SELECT FROM claimed)
-- replace, 7958147258602502657
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), written AS (
                 UPDATE golden_records SET
                     version = $2::bytea, operation = coalesce($3::text, operation),
                     scope = coalesce($4::bytea, scope), call_key = coalesce($5::bytea, call_key),
                     fingerprint = coalesce($6::bytea, fingerprint), digests = coalesce($7::bytea, digests),
                     state = $8::bigint,
                     token = CASE WHEN $9::bigint IS NULL THEN token ELSE greatest($9::bigint, now) END,
                     attempt = $10::bigint, attempt_id = $11::bytea, holder = $12::text,
                     trace_parent = $13::text, on_crash = $14::bigint,
                     lease_end = CASE WHEN $15::bigint IS NULL THEN lease_end
                         ELSE now + least($15::bigint, 9223372036854775807 - now) END,
                     created = CASE WHEN $3::text IS NULL THEN created ELSE now END,
                     finished = CASE WHEN $8::bigint = 1 THEN NULL ELSE now END,
                     expires = CASE WHEN $16::bigint IS NULL THEN expires
                         ELSE now + least($16::bigint, 9223372036854775807 - now) END,
                     outcome_kind = $17::bigint, outcome_schema = $18::bigint, outcome = $19::bytea,
                     note = $20::text, note_by = $21::text, note_of = $22::bytea,
                     purge_from = CASE WHEN $8::bigint IN (4, 5, 6) THEN 9223372036854775807
                         WHEN $16::bigint IS NULL THEN purge_from
                         WHEN $15::bigint IS NULL THEN least(purge_from, now + least($16::bigint, 9223372036854775807 - now))
                         WHEN $3::text IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                         ELSE now + greatest(0, least($16::bigint, 9223372036854775807 - now) - $15::bigint) END
                 FROM clock
                 WHERE id = $1::bytea AND version = $23::bytea
                 RETURNING now, token, lease_end, expires, waited)
             SELECT 1::bigint, now, token, lease_end, expires,
                    CASE WHEN waited AND $24::text IS NOT NULL AND ($8::bigint <> 1 OR $15::bigint = 0)
                        THEN pg_notify($24::text, encode($1::bytea, 'hex'))::text END, 7958147258602502657::bigint
             FROM written
-- replace_all, 592647087847465188
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), many AS MATERIALIZED (SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bytea[], $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bytea[], $20::text[], $21::text[], $22::bytea[], $23::bytea[]) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23)),
         free AS MATERIALIZED (
             SELECT id AS free_id FROM golden_records, many WHERE id = c1
             FOR NO KEY UPDATE OF golden_records SKIP LOCKED),
         written AS (
                 UPDATE golden_records SET
                     version = c2, operation = coalesce(c3, operation),
                     scope = coalesce(c4, scope), call_key = coalesce(c5, call_key),
                     fingerprint = coalesce(c6, fingerprint), digests = coalesce(c7, digests),
                     state = c8,
                     token = CASE WHEN c9 IS NULL THEN token ELSE greatest(c9, now) END,
                     attempt = c10, attempt_id = c11, holder = c12,
                     trace_parent = c13, on_crash = c14,
                     lease_end = CASE WHEN c15 IS NULL THEN lease_end
                         ELSE now + least(c15, 9223372036854775807 - now) END,
                     created = CASE WHEN c3 IS NULL THEN created ELSE now END,
                     finished = CASE WHEN c8 = 1 THEN NULL ELSE now END,
                     expires = CASE WHEN c16 IS NULL THEN expires
                         ELSE now + least(c16, 9223372036854775807 - now) END,
                     outcome_kind = c17, outcome_schema = c18, outcome = c19,
                     note = c20, note_by = c21, note_of = c22,
                     purge_from = CASE WHEN c8 IN (4, 5, 6) THEN 9223372036854775807
                         WHEN c16 IS NULL THEN purge_from
                         WHEN c15 IS NULL THEN least(purge_from, now + least(c16, 9223372036854775807 - now))
                         WHEN c3 IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                         ELSE now + greatest(0, least(c16, 9223372036854775807 - now) - c15) END
                 FROM clock, many, free
                 WHERE id = free_id AND id = c1 AND version = c23
                 RETURNING c1, c8, c15, now, token, lease_end, expires, waited)
             SELECT 1::bigint, now, token, lease_end, expires,
                    CASE WHEN waited AND $24::text IS NOT NULL AND (c8 <> 1 OR c15 = 0)
                        THEN pg_notify($24::text, encode(c1, 'hex'))::text END, c1, 592647087847465188::bigint
             FROM written
-- load_all, 8934253859870352091
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 8934253859870352091::bigint FROM unnest($1::bytea[]) AS many (c1), golden_records
         WHERE id = c1 AND coalesce(octet_length(outcome), 0) <= 4096
-- complete, 6749674629416215959
UPDATE golden_records SET
                 version = $2::bytea, state = 2, finished = (extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
                 expires = (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + least($4::bigint, 9223372036854775807 - (extract(epoch FROM statement_timestamp()) * 1000000)::bigint),
                 outcome_kind = $5::bigint, outcome_schema = $6::bigint, outcome = $7::bytea,
                 purge_from = least(purge_from, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + least($4::bigint, 9223372036854775807 - (extract(epoch FROM statement_timestamp()) * 1000000)::bigint))
             WHERE id = $1::bytea AND version = $3::bytea
             RETURNING 1::bigint, finished, token, lease_end, expires,
                 CASE WHEN waited AND $8::text IS NOT NULL THEN pg_notify($8::text, encode($1::bytea, 'hex'))::text END, 6749674629416215959::bigint
-- many, claim, 980338625063211026
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now, set_config('lock_timeout', '10', true)), many AS MATERIALIZED (SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bytea[], $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bytea[], $20::text[], $21::text[], $22::bytea[]) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22)), claimed AS (
                 INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
                 SELECT c1, c2, c3, c4, c5, c6, c7, c8,
                        CASE WHEN c9 IS NULL THEN 0 ELSE greatest(c9, now) END, c10, c11, c12, c13,
                        c14, now + least(coalesce(c15, 0), 9223372036854775807 - now), now,
                        CASE WHEN c8 = 1 THEN NULL ELSE now END,
                        now + least(coalesce(c16, 0), 9223372036854775807 - now), c17, c18, c19, c20, c21, c22,
                        now + greatest(0, least(coalesce(c16, 0), 9223372036854775807 - now) - coalesce(c15, 0))
                 FROM clock, many WHERE true
                 ON CONFLICT (id) DO NOTHING
                 RETURNING id, created, token, lease_end, expires)
             SELECT 1::bigint, created, token, lease_end, expires, NULL::bytea, id, 980338625063211026::bigint FROM claimed
             UNION ALL
             SELECT 0::bigint, clock.now, NULL::bigint, NULL::bigint, NULL::bigint, record_send(ROW(id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of)), id, 980338625063211026::bigint FROM clock, golden_records
             WHERE (SELECT count(*) FROM claimed) < cardinality($1::bytea[]) AND id = ANY($1::bytea[])
               AND NOT EXISTS (SELECT FROM claimed WHERE claimed.id = golden_records.id) AND coalesce(octet_length(outcome), 0) <= 65536
-- many, again, 1956384377072628707
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, outcome, c1, c2, 1956384377072628707::bigint FROM golden_records
             , unnest($1::bytea[], $2::bytea[], $3::bigint[]) AS many (c1, c2, c3) WHERE id = c1 AND id = ANY($1::bytea[]) AND version = c2 AND state = 2 AND expires = c3
-- many, complete, 2445151191107653059
UPDATE golden_records SET
                 version = c2, state = 2, finished = (extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
                 expires = (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + least(c4, 9223372036854775807 - (extract(epoch FROM statement_timestamp()) * 1000000)::bigint),
                 outcome_kind = c5, outcome_schema = c6, outcome = c7,
                 purge_from = least(purge_from, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + least(c4, 9223372036854775807 - (extract(epoch FROM statement_timestamp()) * 1000000)::bigint))
             FROM (SELECT set_config('lock_timeout', '10', true)) AS wait, unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[]) AS many (c1, c2, c3, c4, c5, c6, c7) WHERE id = c1 AND id = ANY($1::bytea[]) AND version = c3
             RETURNING 1::bigint, finished, token, lease_end, expires,
                 CASE WHEN waited AND $8::text IS NOT NULL THEN pg_notify($8::text, encode(c1, 'hex'))::text END, c1, 2445151191107653059::bigint
-- many, look, 6489485399655917347
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now)
             SELECT 0::bigint, clock.now, NULL::bigint, NULL::bigint, NULL::bigint, CASE WHEN id IS NOT NULL THEN record_send(ROW(id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of)) END, c1, 6489485399655917347::bigint
             FROM clock CROSS JOIN unnest($1::bytea[]) AS many (c1) LEFT JOIN golden_records ON id = c1 AND id = ANY($1::bytea[]) WHERE coalesce(octet_length(outcome), 0) <= 65536
-- mark, 131317041452724692
WITH marked AS (
                 UPDATE golden_records SET waited = true
                 WHERE id = (SELECT id FROM golden_records WHERE id = $1::bytea AND version = $2::bytea AND NOT waited
                     FOR NO KEY UPDATE SKIP LOCKED)
                 RETURNING id)
             SELECT waited OR EXISTS (SELECT FROM marked), 131317041452724692::bigint FROM golden_records
             WHERE id = $1::bytea AND version = $2::bytea
-- purge, 3077925614819465496
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), gone AS (
                 SELECT id FROM golden_records
                 WHERE purge_from <= (SELECT now FROM clock) - $2::bigint
                   AND expires <= (SELECT now FROM clock) - $2::bigint
                   AND (state IN (2, 3)
                        OR state = 1 AND on_crash = 1 AND lease_end <= (SELECT now FROM clock))
                 ORDER BY purge_from LIMIT $1::bigint
                 FOR UPDATE SKIP LOCKED),
             steps AS (DELETE FROM golden_steps AS step USING gone WHERE step.record = gone.id)
             DELETE FROM golden_records AS record USING gone WHERE record.id = gone.id
             RETURNING record.id,
                 CASE WHEN waited AND $3::text IS NOT NULL THEN pg_notify($3::text, encode(record.id, 'hex'))::text END, 3077925614819465496::bigint
-- scan, 8376000137952605935
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, 8376000137952605935::bigint FROM golden_records WHERE id > $1::bytea ORDER BY id LIMIT $2::bigint
-- load_steps, 8267857801794447598
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, step.outcome, step.undo_number, step.note, step.note_by, step.note_of, 8267857801794447598::bigint FROM golden_steps AS step
         JOIN golden_records ON id = record AND created = life
         WHERE record = $1::bytea AND step.name >= $2::bytea AND step.name <= $3::bytea ORDER BY step.name
-- list_steps, 7223572782622922890
SELECT step.version, step.name, step.label, step.state, step.attempt_id, step.on_crash, step.fingerprint, step.digests, step.outcome_kind, step.outcome_schema, ''::bytea, step.undo_number, step.note, step.note_by, step.note_of, 7223572782622922890::bigint FROM golden_steps AS step
         JOIN golden_records ON id = record AND created = life
         WHERE record = $1::bytea AND step.name >= $2::bytea AND step.name <= $3::bytea ORDER BY step.name
-- write_step, 6422396546658014156
WITH held AS (
             SELECT created FROM golden_records
             WHERE id = $1::bytea AND attempt_id = $6::bytea AND state IN (1, 4, 6)
             FOR SHARE)
         INSERT INTO golden_steps AS old (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, note, note_by, note_of, life)
         SELECT $1::bytea, $2::bytea, $3::bytea, $4::text, $5::bigint, $6::bytea, $7::bigint, $8::bytea,
                $9::bytea, $10::bigint, $11::bigint, $12::bytea, $13::bigint, $14::text, $15::text, $16::bytea, created
         FROM held
         ON CONFLICT (record, name) DO UPDATE SET version = excluded.version, label = excluded.label, state = excluded.state, attempt_id = excluded.attempt_id, on_crash = excluded.on_crash, fingerprint = excluded.fingerprint, digests = excluded.digests, outcome_kind = excluded.outcome_kind, outcome_schema = excluded.outcome_schema, outcome = excluded.outcome, undo_number = excluded.undo_number, note = excluded.note, note_by = excluded.note_by, note_of = excluded.note_of, life = excluded.life
         WHERE old.life <> excluded.life OR old.version = $17::bytea
         RETURNING 6422396546658014156::bigint
-- begin_step, 6422396546658014156
WITH held AS (
             SELECT created FROM golden_records
             WHERE id = $1::bytea AND attempt_id = $6::bytea AND state IN (1, 4, 6)
             )
         INSERT INTO golden_steps AS old (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, note, note_by, note_of, life)
         SELECT $1::bytea, $2::bytea, $3::bytea, $4::text, $5::bigint, $6::bytea, $7::bigint, $8::bytea,
                $9::bytea, $10::bigint, $11::bigint, $12::bytea, $13::bigint, $14::text, $15::text, $16::bytea, created
         FROM held
         ON CONFLICT (record, name) DO UPDATE SET version = excluded.version, label = excluded.label, state = excluded.state, attempt_id = excluded.attempt_id, on_crash = excluded.on_crash, fingerprint = excluded.fingerprint, digests = excluded.digests, outcome_kind = excluded.outcome_kind, outcome_schema = excluded.outcome_schema, outcome = excluded.outcome, undo_number = excluded.undo_number, note = excluded.note, note_by = excluded.note_by, note_of = excluded.note_of, life = excluded.life
         WHERE old.life <> excluded.life OR old.version = $17::bytea
         RETURNING 6422396546658014156::bigint
-- channel
golden_moved
-- here
SELECT store FROM golden_schema WHERE version = 1 AND store = '0123456789abcdef0123456789abcdef'
