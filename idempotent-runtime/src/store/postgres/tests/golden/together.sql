-- replace_all, 1 records
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), many AS MATERIALIZED (SELECT * FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('01010101010101010101010101010101', 'hex'))::bytea)) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23)),
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
                    CASE WHEN waited AND (convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text IS NOT NULL AND (c8 <> 1 OR c15 = 0)
                        THEN pg_notify((convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text, encode(c1, 'hex'))::text END, c1, 592647087847465188::bigint
             FROM written
-- replace_all, 1 records, untold
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), many AS MATERIALIZED (SELECT * FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('01010101010101010101010101010101', 'hex'))::bytea)) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23)),
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
                    CASE WHEN waited AND (NULL)::text IS NOT NULL AND (c8 <> 1 OR c15 = 0)
                        THEN pg_notify((NULL)::text, encode(c1, 'hex'))::text END, c1, 592647087847465188::bigint
             FROM written
-- load_all, 1 records
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 8934253859870352091::bigint FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea)) AS many (c1), golden_records
         WHERE id = c1 AND coalesce(octet_length(outcome), 0) <= 4096
-- replace_all, 2 records
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), many AS MATERIALIZED (SELECT * FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('01010101010101010101010101010101', 'hex'))::bytea), ((decode('0202020202020202020202020202020202020202020202020202020202020202', 'hex'))::bytea, (decode('cacacacacacacacacacacacacacacaca', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('02020202020202020202020202020202', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('02020202020202020202020202020202', 'hex'))::bytea)) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23)),
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
                    CASE WHEN waited AND (convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text IS NOT NULL AND (c8 <> 1 OR c15 = 0)
                        THEN pg_notify((convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text, encode(c1, 'hex'))::text END, c1, 592647087847465188::bigint
             FROM written
-- replace_all, 2 records, untold
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), many AS MATERIALIZED (SELECT * FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('01010101010101010101010101010101', 'hex'))::bytea), ((decode('0202020202020202020202020202020202020202020202020202020202020202', 'hex'))::bytea, (decode('cacacacacacacacacacacacacacacaca', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('02020202020202020202020202020202', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('02020202020202020202020202020202', 'hex'))::bytea)) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23)),
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
                    CASE WHEN waited AND (NULL)::text IS NOT NULL AND (c8 <> 1 OR c15 = 0)
                        THEN pg_notify((NULL)::text, encode(c1, 'hex'))::text END, c1, 592647087847465188::bigint
             FROM written
-- load_all, 2 records
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 8934253859870352091::bigint FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea), ((decode('0202020202020202020202020202020202020202020202020202020202020202', 'hex'))::bytea)) AS many (c1), golden_records
         WHERE id = c1 AND coalesce(octet_length(outcome), 0) <= 4096
-- replace_all, 8 records
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), many AS MATERIALIZED (SELECT * FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('01010101010101010101010101010101', 'hex'))::bytea), ((decode('0202020202020202020202020202020202020202020202020202020202020202', 'hex'))::bytea, (decode('cacacacacacacacacacacacacacacaca', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('02020202020202020202020202020202', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('02020202020202020202020202020202', 'hex'))::bytea), ((decode('0303030303030303030303030303030303030303030303030303030303030303', 'hex'))::bytea, (decode('cbcbcbcbcbcbcbcbcbcbcbcbcbcbcbcb', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('03030303030303030303030303030303', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('03030303030303030303030303030303', 'hex'))::bytea), ((decode('0404040404040404040404040404040404040404040404040404040404040404', 'hex'))::bytea, (decode('cccccccccccccccccccccccccccccccc', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('04040404040404040404040404040404', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('04040404040404040404040404040404', 'hex'))::bytea), ((decode('0505050505050505050505050505050505050505050505050505050505050505', 'hex'))::bytea, (decode('cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('05050505050505050505050505050505', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('05050505050505050505050505050505', 'hex'))::bytea), ((decode('0606060606060606060606060606060606060606060606060606060606060606', 'hex'))::bytea, (decode('cececececececececececececececece', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('06060606060606060606060606060606', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('06060606060606060606060606060606', 'hex'))::bytea), ((decode('0707070707070707070707070707070707070707070707070707070707070707', 'hex'))::bytea, (decode('cfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcf', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('07070707070707070707070707070707', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('07070707070707070707070707070707', 'hex'))::bytea), ((decode('0808080808080808080808080808080808080808080808080808080808080808', 'hex'))::bytea, (decode('d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('08080808080808080808080808080808', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('08080808080808080808080808080808', 'hex'))::bytea)) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23)),
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
                    CASE WHEN waited AND (convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text IS NOT NULL AND (c8 <> 1 OR c15 = 0)
                        THEN pg_notify((convert_from(decode('676f6c64656e5f6d6f766564', 'hex'), 'UTF8'))::text, encode(c1, 'hex'))::text END, c1, 592647087847465188::bigint
             FROM written
-- replace_all, 8 records, untold
WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now), many AS MATERIALIZED (SELECT * FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea, (decode('c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('01010101010101010101010101010101', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('01010101010101010101010101010101', 'hex'))::bytea), ((decode('0202020202020202020202020202020202020202020202020202020202020202', 'hex'))::bytea, (decode('cacacacacacacacacacacacacacacaca', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('02020202020202020202020202020202', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('02020202020202020202020202020202', 'hex'))::bytea), ((decode('0303030303030303030303030303030303030303030303030303030303030303', 'hex'))::bytea, (decode('cbcbcbcbcbcbcbcbcbcbcbcbcbcbcbcb', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('03030303030303030303030303030303', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('03030303030303030303030303030303', 'hex'))::bytea), ((decode('0404040404040404040404040404040404040404040404040404040404040404', 'hex'))::bytea, (decode('cccccccccccccccccccccccccccccccc', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('04040404040404040404040404040404', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('04040404040404040404040404040404', 'hex'))::bytea), ((decode('0505050505050505050505050505050505050505050505050505050505050505', 'hex'))::bytea, (decode('cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('05050505050505050505050505050505', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('05050505050505050505050505050505', 'hex'))::bytea), ((decode('0606060606060606060606060606060606060606060606060606060606060606', 'hex'))::bytea, (decode('cececececececececececececececece', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('06060606060606060606060606060606', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('06060606060606060606060606060606', 'hex'))::bytea), ((decode('0707070707070707070707070707070707070707070707070707070707070707', 'hex'))::bytea, (decode('cfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcf', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('07070707070707070707070707070707', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('07070707070707070707070707070707', 'hex'))::bytea), ((decode('0808080808080808080808080808080808080808080808080808080808080808', 'hex'))::bytea, (decode('d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0', 'hex'))::bytea, (NULL)::text, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (NULL)::bytea, (1)::bigint, (1)::bigint, (1)::bigint, (decode('08080808080808080808080808080808', 'hex'))::bytea, (convert_from(decode('686f73743a31', 'hex'), 'UTF8'))::text, (NULL)::text, (1)::bigint, (30000000)::bigint, (86400000000)::bigint, (NULL)::bigint, (NULL)::bigint, (NULL)::bytea, (NULL)::text, (NULL)::text, (NULL)::bytea, (decode('08080808080808080808080808080808', 'hex'))::bytea)) AS many (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23)),
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
                    CASE WHEN waited AND (NULL)::text IS NOT NULL AND (c8 <> 1 OR c15 = 0)
                        THEN pg_notify((NULL)::text, encode(c1, 'hex'))::text END, c1, 592647087847465188::bigint
             FROM written
-- load_all, 8 records
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 8934253859870352091::bigint FROM (VALUES ((decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex'))::bytea), ((decode('0202020202020202020202020202020202020202020202020202020202020202', 'hex'))::bytea), ((decode('0303030303030303030303030303030303030303030303030303030303030303', 'hex'))::bytea), ((decode('0404040404040404040404040404040404040404040404040404040404040404', 'hex'))::bytea), ((decode('0505050505050505050505050505050505050505050505050505050505050505', 'hex'))::bytea), ((decode('0606060606060606060606060606060606060606060606060606060606060606', 'hex'))::bytea), ((decode('0707070707070707070707070707070707070707070707070707070707070707', 'hex'))::bytea), ((decode('0808080808080808080808080808080808080808080808080808080808080808', 'hex'))::bytea)) AS many (c1), golden_records
         WHERE id = c1 AND coalesce(octet_length(outcome), 0) <= 4096
