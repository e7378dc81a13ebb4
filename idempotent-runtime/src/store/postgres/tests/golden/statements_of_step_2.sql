-- create, 7455713043462803520
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), claimed AS (
                 INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from)
                 SELECT $1::bytea, $2::bytea, $3::text, $4::bytea, $5::bytea, $6::bytea, $7::bytea, $8::bigint,
                        CASE WHEN $9::bigint IS NULL THEN 0 ELSE greatest($9::bigint, now) END, $10::bigint, $11::bytea, $12::text, $13::text,
                        $14::bigint, now + least(coalesce($15::bigint, 0), 9223372036854775807 - now), now,
                        CASE WHEN $8::bigint = 1 THEN NULL ELSE now END,
                        now + least(coalesce($16::bigint, 0), 9223372036854775807 - now), $17::bigint, $18::bigint, $19::bytea,
                        now + greatest(0, least(coalesce($16::bigint, 0), 9223372036854775807 - now) - coalesce($15::bigint, 0))
                 FROM clock WHERE true
                 ON CONFLICT (id) DO NOTHING
                 RETURNING created, token, lease_end, expires)
             SELECT 1::bigint, created, token, lease_end, expires, NULL::bytea, 7455713043462803520::bigint FROM claimed
             UNION ALL
             SELECT 0::bigint, clock.now, NULL::bigint, NULL::bigint, NULL::bigint, record_send(ROW(id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome)), 7455713043462803520::bigint FROM clock, golden_records
             WHERE id = $1::bytea AND NOT EXISTS (SELECT FROM claimed)
-- replace, 3732751414210885967
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
                     purge_from = CASE WHEN $8::bigint IN (4, 5) THEN 9223372036854775807
                         WHEN $16::bigint IS NULL THEN purge_from
                         WHEN $15::bigint IS NULL THEN least(purge_from, now + least($16::bigint, 9223372036854775807 - now))
                         WHEN $3::text IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                         ELSE now + greatest(0, least($16::bigint, 9223372036854775807 - now) - $15::bigint) END
                 FROM clock
                 WHERE id = $1::bytea AND version = $20::bytea
                 RETURNING now, token, lease_end, expires, waited)
             SELECT 1::bigint, now, token, lease_end, expires,
                    CASE WHEN waited AND $21::text IS NOT NULL AND ($8::bigint <> 1 OR $15::bigint = 0)
                        THEN pg_notify($21::text, encode($1::bytea, 'hex'))::text END, 3732751414210885967::bigint
             FROM written
-- write_step, 3937624058442908691
WITH held AS (
             SELECT created FROM golden_records
             WHERE id = $1::bytea AND attempt_id = $6::bytea AND state IN (1, 4, 6)
             FOR SHARE)
         INSERT INTO golden_steps AS old (record, version, name, label, state, attempt_id, on_crash, fingerprint, digests, outcome_kind, outcome_schema, outcome, undo_number, life)
         SELECT $1::bytea, $2::bytea, $3::bytea, $4::text, $5::bigint, $6::bytea, $7::bigint, $8::bytea,
                $9::bytea, $10::bigint, $11::bigint, $12::bytea, $13::bigint, created
         FROM held
         ON CONFLICT (record, name) DO UPDATE SET version = excluded.version, label = excluded.label, state = excluded.state, attempt_id = excluded.attempt_id, on_crash = excluded.on_crash, fingerprint = excluded.fingerprint, digests = excluded.digests, outcome_kind = excluded.outcome_kind, outcome_schema = excluded.outcome_schema, outcome = excluded.outcome, undo_number = excluded.undo_number, life = excluded.life
         WHERE old.life <> excluded.life OR old.version = $14::bytea
         RETURNING 3937624058442908691::bigint
