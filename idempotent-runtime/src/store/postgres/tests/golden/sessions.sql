-- a session
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
         SET plan_cache_mode = force_generic_plan;
         SET enable_seqscan = off;
         SET jit = off;
         SET lock_timeout = 15000;
             SELECT coalesce(has_any_column_privilege(to_regclass('golden_records')::oid, 'UPDATE'), true),
                 has_function_privilege('pg_catalog.pg_notify(text, text)', 'EXECUTE')
-- a session of two minutes
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
         SET plan_cache_mode = force_generic_plan;
         SET enable_seqscan = off;
         SET jit = off;
         SET lock_timeout = 60000;
             SELECT coalesce(has_any_column_privilege(to_regclass('golden_records')::oid, 'UPDATE'), true),
                 has_function_privilege('pg_catalog.pg_notify(text, text)', 'EXECUTE')
-- a session behind a proxy

             SELECT coalesce(has_any_column_privilege(to_regclass('golden_records')::oid, 'UPDATE'), true),
                 has_function_privilege('pg_catalog.pg_notify(text, text)', 'EXECUTE')
-- the look for a version
SELECT version FROM golden_records WHERE id = decode('0101010101010101010101010101010101010101010101010101010101010101', 'hex')
-- the channel of LISTEN
golden_moved
-- hello
SELECT pg_notify($1, $2)
hello
