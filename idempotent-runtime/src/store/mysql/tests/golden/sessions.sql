-- a session
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1,
         SESSION completion_type = 'NO_CHAIN', SESSION sql_safe_updates = 0,
         SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1,
         SESSION time_zone = '+00:00';
         SET SESSION innodb_lock_wait_timeout = 15, SESSION lock_wait_timeout = 15;
         SELECT VERSION(), CAST(@@max_allowed_packet AS UNSIGNED), (
             SELECT COUNT(*) FROM information_schema.triggers WHERE event_object_schema = DATABASE()
             AND event_object_table IN ('golden_records', 'golden_steps'))
-- a session that waits for a day
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1,
         SESSION completion_type = 'NO_CHAIN', SESSION sql_safe_updates = 0,
         SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1,
         SESSION time_zone = '+00:00';
         SET SESSION innodb_lock_wait_timeout = 3600, SESSION lock_wait_timeout = 3600;
         SELECT VERSION(), CAST(@@max_allowed_packet AS UNSIGNED), (
             SELECT COUNT(*) FROM information_schema.triggers WHERE event_object_schema = DATABASE()
             AND event_object_table IN ('golden_records', 'golden_steps'))
-- a session of a relay
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1,
         SESSION completion_type = 'NO_CHAIN', SESSION sql_safe_updates = 0,
         SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1,
         SESSION time_zone = '+00:00'
-- the look for a transaction
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here
-- the look for a version
SELECT version FROM golden_records WHERE id = x'0101010101010101010101010101010101010101010101010101010101010101'
