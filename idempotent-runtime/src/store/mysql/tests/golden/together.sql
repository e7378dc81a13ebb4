-- MariaDB, 1 records
SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';
-- MariaDB, known, 1 records
SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';
-- MySQL, known, 1 records
UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';
-- load_all, 1 records
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM golden_records
             WHERE id IN (x'0101010101010101010101010101010101010101010101010101010101010101') AND COALESCE(LENGTH(outcome), 0) <= 4096
-- find_free, 1 records
SELECT id FROM golden_records WHERE id IN (x'0101010101010101010101010101010101010101010101010101010101010101') FOR UPDATE SKIP LOCKED
-- the purge of 1 records
DELETE FROM golden_steps WHERE record = x'0101010101010101010101010101010101010101010101010101010101010101'; DELETE FROM golden_records WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101';
-- MariaDB, 2 records
SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cacacacacacacacacacacacacacacaca'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'02020202020202020202020202020202', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202' AND version = x'02020202020202020202020202020202';
-- MariaDB, known, 2 records
SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cacacacacacacacacacacacacacacaca'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'02020202020202020202020202020202', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202' AND version = x'02020202020202020202020202020202';
-- MySQL, known, 2 records
UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cacacacacacacacacacacacacacacaca'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'02020202020202020202020202020202', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202' AND version = x'02020202020202020202020202020202';
-- load_all, 2 records
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM golden_records
             WHERE id IN (x'0101010101010101010101010101010101010101010101010101010101010101', x'0202020202020202020202020202020202020202020202020202020202020202') AND COALESCE(LENGTH(outcome), 0) <= 4096
-- find_free, 2 records
SELECT id FROM golden_records WHERE id IN (x'0101010101010101010101010101010101010101010101010101010101010101', x'0202020202020202020202020202020202020202020202020202020202020202') FOR UPDATE SKIP LOCKED
-- the purge of 2 records
DELETE FROM golden_steps WHERE record = x'0101010101010101010101010101010101010101010101010101010101010101'; DELETE FROM golden_records WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101';DELETE FROM golden_steps WHERE record = x'0202020202020202020202020202020202020202020202020202020202020202'; DELETE FROM golden_records WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202';
-- MariaDB, 8 records
SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cacacacacacacacacacacacacacacaca'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'02020202020202020202020202020202', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202' AND version = x'02020202020202020202020202020202';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cbcbcbcbcbcbcbcbcbcbcbcbcbcbcbcb'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'03030303030303030303030303030303', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0303030303030303030303030303030303030303030303030303030303030303' AND version = x'03030303030303030303030303030303';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cccccccccccccccccccccccccccccccc'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'04040404040404040404040404040404', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0404040404040404040404040404040404040404040404040404040404040404' AND version = x'04040404040404040404040404040404';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'05050505050505050505050505050505', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0505050505050505050505050505050505050505050505050505050505050505' AND version = x'05050505050505050505050505050505';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cececececececececececececececece'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'06060606060606060606060606060606', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0606060606060606060606060606060606060606060606060606060606060606' AND version = x'06060606060606060606060606060606';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcf'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'07070707070707070707070707070707', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0707070707070707070707070707070707070707070707070707070707070707' AND version = x'07070707070707070707070707070707';SET STATEMENT innodb_lock_wait_timeout = 0 FOR INSERT INTO golden_records (id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, purge_from)
             SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, NULL, note, note_by, note_of, purge_from FROM golden_records AS seen WHERE id = x'0808080808080808080808080808080808080808080808080808080808080808' AND version = x'08080808080808080808080808080808' FOR UPDATE
             ON DUPLICATE KEY UPDATE version = x'6c6c6c6c6c6c6c6c6c6c6c6c6c6c6c6c', operation = COALESCE(NULL, golden_records.operation),
                 scope = COALESCE(NULL, golden_records.scope), call_key = COALESCE(NULL, golden_records.call_key),
                 fingerprint = COALESCE(NULL, golden_records.fingerprint), digests = COALESCE(NULL, golden_records.digests),
                 state = (2), token = COALESCE(GREATEST(NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), golden_records.token),
                 attempt = (1), attempt_id = x'08080808080808080808080808080808', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST(NULL, 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), golden_records.lease_end),
                 created = IF(NULL IS NULL, golden_records.created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((2) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), golden_records.expires),
                 outcome_kind = (1), outcome_schema = (0), outcome = x'08',
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (2) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN golden_records.purge_from
                     WHEN NULL IS NULL THEN LEAST(golden_records.purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND golden_records.purge_from < 9223372036854775807 THEN golden_records.purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - NULL) END
             RETURNING TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), token, lease_end, expires;
-- MariaDB, known, 8 records
SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cacacacacacacacacacacacacacacaca'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'02020202020202020202020202020202', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202' AND version = x'02020202020202020202020202020202';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cbcbcbcbcbcbcbcbcbcbcbcbcbcbcbcb'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'03030303030303030303030303030303', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0303030303030303030303030303030303030303030303030303030303030303' AND version = x'03030303030303030303030303030303';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cccccccccccccccccccccccccccccccc'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'04040404040404040404040404040404', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0404040404040404040404040404040404040404040404040404040404040404' AND version = x'04040404040404040404040404040404';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'05050505050505050505050505050505', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0505050505050505050505050505050505050505050505050505050505050505' AND version = x'05050505050505050505050505050505';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cececececececececececececececece'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'06060606060606060606060606060606', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0606060606060606060606060606060606060606060606060606060606060606' AND version = x'06060606060606060606060606060606';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcf'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'07070707070707070707070707070707', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0707070707070707070707070707070707070707070707070707070707070707' AND version = x'07070707070707070707070707070707';SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE golden_records SET
                 version = x'6c6c6c6c6c6c6c6c6c6c6c6c6c6c6c6c', state = 2, finished = LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state),
                 expires = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 outcome_kind = (1), outcome_schema = (0), outcome = x'08',
                 purge_from = LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
             WHERE id = x'0808080808080808080808080808080808080808080808080808080808080808' AND version = x'08080808080808080808080808080808';
-- MySQL, known, 8 records
UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9c9'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'01010101010101010101010101010101', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101' AND version = x'01010101010101010101010101010101';UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cacacacacacacacacacacacacacacaca'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'02020202020202020202020202020202', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202' AND version = x'02020202020202020202020202020202';UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cbcbcbcbcbcbcbcbcbcbcbcbcbcbcbcb'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'03030303030303030303030303030303', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0303030303030303030303030303030303030303030303030303030303030303' AND version = x'03030303030303030303030303030303';UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cccccccccccccccccccccccccccccccc'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'04040404040404040404040404040404', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0404040404040404040404040404040404040404040404040404040404040404' AND version = x'04040404040404040404040404040404';UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'05050505050505050505050505050505', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0505050505050505050505050505050505050505050505050505050505050505' AND version = x'05050505050505050505050505050505';UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cececececececececececececececece'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'06060606060606060606060606060606', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0606060606060606060606060606060606060606060606060606060606060606' AND version = x'06060606060606060606060606060606';UPDATE golden_records SET version = IF(LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state) = 0, version, x'cfcfcfcfcfcfcfcfcfcfcfcfcfcfcfcf'), operation = COALESCE(NULL, operation),
                 scope = COALESCE(NULL, scope), call_key = COALESCE(NULL, call_key),
                 fingerprint = COALESCE(NULL, fingerprint), digests = COALESCE(NULL, digests),
                 state = (1), token = COALESCE(GREATEST((1), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), token),
                 attempt = (1), attempt_id = x'07070707070707070707070707070707', holder = _utf8mb4 x'686f73743a31', trace_parent = NULL, on_crash = (1),
                 lease_end = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((30000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), lease_end),
                 created = IF(NULL IS NULL, created, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 finished = IF((1) = 1, NULL, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 expires = COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))), expires),
                 outcome_kind = NULL, outcome_schema = NULL, outcome = NULL,
                 note = NULL, note_by = NULL, note_of = NULL,
                 purge_from = CASE WHEN (1) IN (4, 5, 6) THEN 9223372036854775807
                     WHEN (86400000000) IS NULL THEN purge_from
                     WHEN (30000000) IS NULL THEN LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
                     WHEN NULL IS NULL AND purge_from < 9223372036854775807 THEN purge_from
                     ELSE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + GREATEST(0, LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) - (30000000)) END WHERE id = x'0707070707070707070707070707070707070707070707070707070707070707' AND version = x'07070707070707070707070707070707';UPDATE golden_records SET
                 version = x'6c6c6c6c6c6c6c6c6c6c6c6c6c6c6c6c', state = 2, finished = LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 0 * state),
                 expires = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
                 outcome_kind = (1), outcome_schema = (0), outcome = x'08',
                 purge_from = LEAST(purge_from, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + LEAST((86400000000), 9223372036854775807 - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))))
             WHERE id = x'0808080808080808080808080808080808080808080808080808080808080808' AND version = x'08080808080808080808080808080808';
-- load_all, 8 records
SELECT id, version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, note, note_by, note_of, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) FROM golden_records
             WHERE id IN (x'0101010101010101010101010101010101010101010101010101010101010101', x'0202020202020202020202020202020202020202020202020202020202020202', x'0303030303030303030303030303030303030303030303030303030303030303', x'0404040404040404040404040404040404040404040404040404040404040404', x'0505050505050505050505050505050505050505050505050505050505050505', x'0606060606060606060606060606060606060606060606060606060606060606', x'0707070707070707070707070707070707070707070707070707070707070707', x'0808080808080808080808080808080808080808080808080808080808080808') AND COALESCE(LENGTH(outcome), 0) <= 4096
-- find_free, 8 records
SELECT id FROM golden_records WHERE id IN (x'0101010101010101010101010101010101010101010101010101010101010101', x'0202020202020202020202020202020202020202020202020202020202020202', x'0303030303030303030303030303030303030303030303030303030303030303', x'0404040404040404040404040404040404040404040404040404040404040404', x'0505050505050505050505050505050505050505050505050505050505050505', x'0606060606060606060606060606060606060606060606060606060606060606', x'0707070707070707070707070707070707070707070707070707070707070707', x'0808080808080808080808080808080808080808080808080808080808080808') FOR UPDATE SKIP LOCKED
-- the purge of 8 records
DELETE FROM golden_steps WHERE record = x'0101010101010101010101010101010101010101010101010101010101010101'; DELETE FROM golden_records WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101';DELETE FROM golden_steps WHERE record = x'0202020202020202020202020202020202020202020202020202020202020202'; DELETE FROM golden_records WHERE id = x'0202020202020202020202020202020202020202020202020202020202020202';DELETE FROM golden_steps WHERE record = x'0303030303030303030303030303030303030303030303030303030303030303'; DELETE FROM golden_records WHERE id = x'0303030303030303030303030303030303030303030303030303030303030303';DELETE FROM golden_steps WHERE record = x'0404040404040404040404040404040404040404040404040404040404040404'; DELETE FROM golden_records WHERE id = x'0404040404040404040404040404040404040404040404040404040404040404';DELETE FROM golden_steps WHERE record = x'0505050505050505050505050505050505050505050505050505050505050505'; DELETE FROM golden_records WHERE id = x'0505050505050505050505050505050505050505050505050505050505050505';DELETE FROM golden_steps WHERE record = x'0606060606060606060606060606060606060606060606060606060606060606'; DELETE FROM golden_records WHERE id = x'0606060606060606060606060606060606060606060606060606060606060606';DELETE FROM golden_steps WHERE record = x'0707070707070707070707070707070707070707070707070707070707070707'; DELETE FROM golden_records WHERE id = x'0707070707070707070707070707070707070707070707070707070707070707';DELETE FROM golden_steps WHERE record = x'0808080808080808080808080808080808080808080808080808080808080808'; DELETE FROM golden_records WHERE id = x'0808080808080808080808080808080808080808080808080808080808080808';
