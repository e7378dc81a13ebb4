-- load
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now)
             SELECT 0::bigint, clock.now, NULL::bigint, NULL::bigint, NULL::bigint, CASE WHEN id IS NOT NULL THEN record_send(ROW(id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of)) END, 7912870922703338023::bigint
             FROM clock LEFT JOIN golden_records ON id = (decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea
-- create
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), claimed AS (
                 INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
                 SELECT (decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('746573742e636861726765', 'hex'), 'UTF8'))::text, (decode('74656e616e74', 'hex'))::bytea, (decode('01', 'hex'))::bytea, (decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('01', 'hex'))::bytea, (1)::bigint,
                        CASE WHEN (1)::bigint IS NULL THEN 0 ELSE greatest((1)::bigint, now) END, (1)::bigint, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text,
                        (1)::bigint, now + least(coalesce((30000000)::bigint, 0), 9223372036854775807 - now), now,
                        CASE WHEN (1)::bigint = 1 THEN NULL ELSE now END,
                        now + least(coalesce((86400000000)::bigint, 0), 9223372036854775807 - now), (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea,
                        now + greatest(0, least(coalesce((86400000000)::bigint, 0), 9223372036854775807 - now) - coalesce((30000000)::bigint, 0))
                 FROM clock WHERE true
                 ON CONFLICT (id) DO NOTHING
                 RETURNING created, token, lease_end, expires)
             SELECT 1::bigint, created, token, lease_end, expires, NULL::bytea, 513957848776080704::bigint FROM claimed
             UNION ALL
             SELECT 0::bigint, clock.now, NULL::bigint, NULL::bigint, NULL::bigint, record_send(ROW(id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of)), 513957848776080704::bigint FROM clock, golden_records
             WHERE id = (decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea AND NOT EXISTS (SELECT FROM claimed)
-- replace
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), written AS (
                 UPDATE golden_records SET
                     version = (decode('c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9', 'hex'))::bytea, operation = coalesce((NULL)::text, operation),
                     scope = coalesce((NULL)::bytea, scope), call_key = coalesce((NULL)::bytea, call_key),
                     fingerprint = coalesce((NULL)::bytea, fingerprint), digests = coalesce((NULL)::bytea, digests),
                     state = (1)::bigint,
                     token = CASE WHEN (1)::bigint IS NULL THEN token ELSE greatest((1)::bigint, now) END,
                     attempt = (1)::bigint, attempt_id = (decode('01010101010101010101010101010101', 'hex'))::bytea, holder = (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text,
                     trace_parent = (NULL)::text, on_crash = (1)::bigint,
                     lease_end = CASE WHEN (30000000)::bigint IS NULL THEN lease_end
                         ELSE now + least((30000000)::bigint, 9223372036854775807 - now) END,
                     created = CASE WHEN (NULL)::text IS NULL THEN created ELSE now END,
                     finished = CASE WHEN (1)::bigint = 1 THEN NULL ELSE now END,
                     expires = CASE WHEN (86400000000)::bigint IS NULL THEN expires
                         ELSE now + least((86400000000)::bigint, 9223372036854775807 - now) END,
                     outcome_kind = (NULL)::bigint, outcome_schema = (NULL)::bigint, outcome = (NULL)::bytea,
                     note = (NULL)::text, note_by = (NULL)::text, note_of = (NULL)::bytea,
                     purge_from = CASE WHEN (1)::bigint IN (4, 5, 6) THEN 9223372036854775807
                         WHEN (86400000000)::bigint IS NULL THEN purge_from
                         WHEN (30000000)::bigint IS NULL THEN least(purge_from, now + least((86400000000)::bigint, 9223372036854775807 - now))
                         WHEN (NULL)::text IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                         ELSE now + greatest(0, least((86400000000)::bigint, 9223372036854775807 - now) - (30000000)::bigint) END
                 FROM clock
                 WHERE id = (decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea AND version = (decode('01010101010101010101010101010101', 'hex'))::bytea
                 RETURNING now, token, lease_end, expires, waited)
             SELECT 1::bigint, now, token, lease_end, expires,
                    CASE WHEN waited AND (convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text IS NOT NULL AND ((1)::bigint <> 1 OR (30000000)::bigint = 0)
                        THEN pg_notify((convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text, encode((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, 'hex'))::text END, 7958147258602502657::bigint
             FROM written
-- complete
UPDATE golden_records SET
                 version = (decode('65656565656565656565656565656565', 'hex'))::bytea, state = 2, finished = (extract(epoch FROM statement_timestamp()) * 1000000)::bigint,
                 expires = (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + least((86400000000)::bigint, 9223372036854775807 - (extract(epoch FROM statement_timestamp()) * 1000000)::bigint),
                 outcome_kind = (1)::bigint, outcome_schema = (0)::bigint, outcome = (decode('01', 'hex'))::bytea,
                 purge_from = least(purge_from, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + least((86400000000)::bigint, 9223372036854775807 - (extract(epoch FROM statement_timestamp()) * 1000000)::bigint))
             WHERE id = (decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea AND version = (decode('01010101010101010101010101010101', 'hex'))::bytea
             RETURNING 1::bigint, finished, token, lease_end, expires,
                 CASE WHEN waited AND (convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text IS NOT NULL THEN pg_notify((convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text, encode((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, 'hex'))::text END, 6749674629416215959::bigint
