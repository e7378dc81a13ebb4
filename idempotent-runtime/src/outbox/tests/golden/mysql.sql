-- the session of a relay
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
     SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1,
         SESSION completion_type = 'NO_CHAIN', SESSION sql_safe_updates = 0,
         SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1,
         SESSION time_zone = '+00:00'
-- 1
CREATE TABLE IF NOT EXISTS golden_outbox_schema (
    version BIGINT NOT NULL PRIMARY KEY,
    usable_from BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS golden_outbox_messages (
    id VARBINARY(256) NOT NULL PRIMARY KEY,
    message_key VARBINARY(256) NOT NULL,
    number BIGINT NOT NULL,
    topic VARBINARY(256) NOT NULL,
    headers LONGBLOB NOT NULL,
    payload LONGBLOB NOT NULL,
    traceparent VARBINARY(256),
    created BIGINT NOT NULL,
    KEY golden_outbox_order (message_key, number)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS golden_outbox_counters (
    message_key VARBINARY(256) NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS golden_outbox_rejected (
    id VARBINARY(256) NOT NULL,
    message_key VARBINARY(256) NOT NULL,
    number BIGINT NOT NULL,
    topic VARBINARY(256) NOT NULL,
    headers LONGBLOB NOT NULL,
    payload LONGBLOB NOT NULL,
    traceparent VARBINARY(256),
    created BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    reason LONGBLOB NOT NULL,
    PRIMARY KEY (id, rejected)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS golden_outbox_history (
    id VARBINARY(256) NOT NULL,
    message_key VARBINARY(256) NOT NULL,
    number BIGINT NOT NULL,
    topic VARBINARY(256) NOT NULL,
    headers LONGBLOB NOT NULL,
    payload LONGBLOB NOT NULL,
    traceparent VARBINARY(256),
    created BIGINT NOT NULL,
    sent BIGINT NOT NULL,
    PRIMARY KEY (sent, id)
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS golden_outbox_claims (
    message_key VARBINARY(256) NOT NULL PRIMARY KEY,
    token BIGINT NOT NULL,
    lease_end BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    attempted VARBINARY(256),
    next_attempt BIGINT NOT NULL,
    blocked_since BIGINT NOT NULL,
    reason LONGBLOB
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS golden_outbox_relays (
    relay BIGINT NOT NULL PRIMARY KEY,
    sleeps_until BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS golden_outbox_acts (
    message_key VARBINARY(256) NOT NULL,
    acted BIGINT NOT NULL,
    act VARBINARY(256) NOT NULL,
    id VARBINARY(256),
    person VARBINARY(256),
    reason LONGBLOB NOT NULL,
    PRIMARY KEY (message_key, acted, act)
) ENGINE = InnoDB;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'', 0) ON DUPLICATE KEY UPDATE number = number;
INSERT INTO golden_outbox_schema (version, usable_from) VALUES (2, 1) ON DUPLICATE KEY UPDATE version = version;

-- 2
DELETE FROM golden_outbox_claims WHERE lease_end < (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000) AND blocked_since = 0 AND NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.message_key = golden_outbox_claims.message_key)
-- 3
DELETE FROM golden_outbox_claims WHERE lease_end < CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND blocked_since = 0 AND NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.message_key = golden_outbox_claims.message_key)
-- 4
DELETE FROM golden_outbox_claims WHERE token = <number> AND (attempts = 0 OR NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.id = golden_outbox_claims.attempted));
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0 WHERE token = <number>
-- 5
DELETE FROM golden_outbox_counters WHERE message_key IN (x'6b6b31', x'6b6b32') AND number <= <number>
-- 6
DELETE FROM golden_outbox_history WHERE sent <= <number>
-- 7
DELETE FROM golden_outbox_messages WHERE id IN (x'31', x'32', x'33') AND number IN (<number>, <number>, <number>)
-- 8
DELETE FROM golden_outbox_messages WHERE id IN (x'34') AND number IN (<number>)
-- 9
DELETE FROM golden_outbox_messages WHERE id IN (x'35') AND number IN (<number>);
UPDATE golden_outbox_claims SET blocked_since = 0, attempts = 0, reason = NULL
                 WHERE blocked_since > 0 AND attempted IN (x'35')
-- 10
DELETE FROM golden_outbox_messages WHERE id IN (x'38') AND number IN (<number>)
-- 11
INSERT INTO golden_outbox_acts (message_key, acted, act, id, person, reason)
             SELECT x'6b6b31', CASE WHEN coalesce(max(acted), 0) < CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) THEN CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) ELSE max(acted) + 1 END,
                 x'646973636172646564', (SELECT id FROM golden_outbox_messages WHERE message_key = x'6b6b31' ORDER BY number LIMIT 1), NULL, x'776879' FROM golden_outbox_acts WHERE message_key = x'6b6b31';
INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), x'776879' FROM golden_outbox_messages WHERE id = x'37' FOR UPDATE;
             DELETE FROM golden_outbox_messages WHERE id = x'37';
DELETE FROM golden_outbox_claims WHERE message_key = x'6b6b31'
-- 12
INSERT INTO golden_outbox_acts (message_key, acted, act, id, person, reason)
             SELECT x'6b6b31', CASE WHEN coalesce(max(acted), 0) < CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) THEN CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) ELSE max(acted) + 1 END,
                 x'726573756d6564', (SELECT id FROM golden_outbox_messages WHERE message_key = x'6b6b31' ORDER BY number LIMIT 1), NULL, x'' FROM golden_outbox_acts WHERE message_key = x'6b6b31';
UPDATE golden_outbox_claims SET blocked_since = 0, attempts = 0, next_attempt = 0, reason = NULL
             WHERE message_key = x'6b6b31' AND blocked_since > 0
-- 13
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (x'6b6b31', <number>, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, 0, 0, 0)
             ON DUPLICATE KEY UPDATE
                 token = CASE WHEN lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND blocked_since = 0 THEN <number> ELSE token END,
                 lease_end = CASE WHEN token = <number> THEN CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number> ELSE lease_end END
-- 14
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (x'6b6b31', <number>, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, 0, 0, 0), (x'6b6b32', <number>, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, 0, 0, 0), (x'6c33', <number>, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, 0, 0, 0)
             ON DUPLICATE KEY UPDATE
                 token = CASE WHEN lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND blocked_since = 0 THEN <number> ELSE token END,
                 lease_end = CASE WHEN token = <number> THEN CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number> ELSE lease_end END
-- 15
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (x'6b6b31', <number>, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, 0, 0, 0), (x'6c1f', <number>, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, 0, 0, 0)
             ON DUPLICATE KEY UPDATE
                 token = CASE WHEN lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND blocked_since = 0 THEN <number> ELSE token END,
                 lease_end = CASE WHEN token = <number> THEN CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number> ELSE lease_end END
-- 16
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (?, ?, ?, ?, ?, ?, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 17
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (?, ?, ?, x'', ?, ?, @idempotent_outbox_number, (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000))
-- 18
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (?, ?, ?, x'', ?, ?, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 19
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6168656164', @idempotent_outbox_number := (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'65', x'6b6168656164', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000))
-- 20
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b686561646564', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'63', x'6b686561646564', x'6f7264657273', x'046e616d650576616c7565', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 21
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b31', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'31', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 22
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b31', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'34', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 23
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b31', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'35', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 24
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b31', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'36', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 25
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b31', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'37', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 26
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b31', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'38', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 27
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b31', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'39', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 28
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b32', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'32', x'6b6b32', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 29
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6b65796564', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'61', x'6b6b65796564', x'6f7264657273', x'', x'70616964', NULL, @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 30
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6c6f6e67', @idempotent_outbox_number := (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000))
-- 31
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b6c6f6e67', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 32
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'6b747261636564', @idempotent_outbox_number := CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
             ON DUPLICATE KEY UPDATE number = @idempotent_outbox_number := greatest(golden_outbox_counters.number + 1, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'64', x'6b747261636564', x'6f7264657273', x'', x'70616964', x'30302d30616637363531393136636434336464383434386562323131633830333139632d623761643662373136393230333333312d3031', @idempotent_outbox_number, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 33
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'3130', x'6c1f', x'6f7264657273', x'', x'70616964', NULL, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 34
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'33', x'6c33', x'6f7264657273', x'', x'70616964', NULL, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 35
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'62', x'6c22', x'6f7264657273', x'', x'70616964', NULL, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED))
-- 36
SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here;
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created) VALUES (x'66', x'6c26', x'6f7264657273', x'', x'70616964', NULL, (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000), (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000))
-- 37
SELECT claimed.message_key FROM golden_outbox_claims AS claimed WHERE claimed.message_key IN (x'6b00', x'6b01', x'6b02', x'6b03', x'6b04', x'6b05', x'6b06', x'6b07', x'6b08', x'6b09', x'6b0a', x'6b0b', x'6b0c', x'6b0d', x'6b0e', x'6b0f', x'6b10', x'6b11', x'6b12', x'6b13', x'6b14', x'6b15', x'6b16', x'6b17', x'6b18', x'6b19', x'6b1a', x'6b1b', x'6b1c', x'6b1d', x'6b1e', x'6b1f', x'6b20', x'6b21', x'6b22', x'6b23', x'6b24', x'6b25', x'6b26', x'6b27', x'6b28', x'6b29', x'6b2a', x'6b2b', x'6b2c', x'6b2d', x'6b2e', x'6b2f', x'6b30', x'6b31', x'6b32', x'6b33', x'6b34', x'6b35', x'6b36', x'6b37', x'6b38', x'6b39', x'6b3a', x'6b3b', x'6b3c', x'6b3d', x'6b3e', x'6b3f', x'6b40', x'6b41', x'6b42', x'6b43', x'6b44', x'6b45', x'6b46', x'6b47', x'6b48', x'6b49', x'6b4a', x'6b4b', x'6b4c', x'6b4d', x'6b4e', x'6b4f', x'6b50', x'6b51', x'6b52', x'6b53', x'6b54', x'6b55', x'6b56', x'6b57', x'6b58', x'6b59', x'6b5a', x'6b5b', x'6b5c', x'6b5d', x'6b5e', x'6b5f', x'6b60', x'6b61', x'6b6168656164', x'6b62', x'6b63', x'6b64', x'6b65', x'6b66', x'6b67', x'6b68', x'6b686561646564', x'6b69', x'6b6a', x'6b6b', x'6b6b65796564', x'6b6c', x'6b6c6f6e67', x'6b6d', x'6b6e', x'6b6f', x'6b70', x'6b71', x'6b72', x'6b73', x'6b74', x'6b747261636564', x'6b75', x'6b76', x'6b77', x'6b78', x'6b79', x'6b7a', x'6b7b', x'6b7c', x'6b7d', x'6b7e', x'6b7f', x'6b80', x'6b81', x'6c22', x'6c26', x'6c28') AND NOT (claimed.lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.blocked_since = 0)
-- 38
SELECT claimed.message_key FROM golden_outbox_claims AS claimed WHERE claimed.message_key IN (x'6b09', x'6b0a', x'6b0b', x'6b0c', x'6b0d', x'6b0e', x'6b0f', x'6b10', x'6b11', x'6b12', x'6b13', x'6b14', x'6b15', x'6b16', x'6b17', x'6b18', x'6b19', x'6b1a', x'6b1b', x'6b1c', x'6b1d', x'6b1e', x'6b1f', x'6b20', x'6b21', x'6b22', x'6b23', x'6b24', x'6b25', x'6b26', x'6b27', x'6b28', x'6b29', x'6b2a', x'6b2b', x'6b2c', x'6b2d', x'6b2e', x'6b2f', x'6b30', x'6b31', x'6b32', x'6b33', x'6b34', x'6b35', x'6b36', x'6b37', x'6b38', x'6b39', x'6b3a', x'6b3b', x'6b3c', x'6b3d', x'6b3e', x'6b3f', x'6b40', x'6b41', x'6b42', x'6b43', x'6b44', x'6b45', x'6b46', x'6b47', x'6b48', x'6b49', x'6b4a', x'6b4b', x'6b4c', x'6b4d', x'6b4e', x'6b4f', x'6b50', x'6b51', x'6b52', x'6b53', x'6b54', x'6b55', x'6b56', x'6b57', x'6b58', x'6b59', x'6b5a', x'6b5b', x'6b5c', x'6b5d', x'6b5e', x'6b5f', x'6b60', x'6b61', x'6b6168656164', x'6b62', x'6b63', x'6b64', x'6b65', x'6b66', x'6b67', x'6b68', x'6b686561646564', x'6b69', x'6b6a', x'6b6b', x'6b6b65796564', x'6b6c', x'6b6c6f6e67', x'6b6d', x'6b6e', x'6b6f', x'6b70', x'6b71', x'6b72', x'6b73', x'6b74', x'6b747261636564', x'6b75', x'6b76', x'6b77', x'6b78', x'6b79', x'6b7a', x'6b7b', x'6b7c', x'6b7d', x'6b7e', x'6b7f', x'6b80', x'6b81', x'6c22', x'6c26', x'6c28') AND NOT (claimed.lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.blocked_since = 0)
-- 39
SELECT claimed.message_key FROM golden_outbox_claims AS claimed WHERE claimed.message_key IN (x'6b6b31') AND NOT (claimed.lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.blocked_since = 0)
-- 40
SELECT claimed.message_key FROM golden_outbox_claims AS claimed WHERE claimed.message_key IN (x'6b6b31', x'6b6b32', x'6c33') AND NOT (claimed.lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.blocked_since = 0)
-- 41
SELECT claimed.message_key FROM golden_outbox_claims AS claimed WHERE claimed.message_key IN (x'6b6b31', x'6c1f') AND NOT (claimed.lease_end <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.next_attempt <= CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) AND claimed.blocked_since = 0)
-- 42
SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) - claimed.blocked_since
             FROM golden_outbox_claims AS claimed LEFT JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0 AND claimed.message_key > x''  
             ORDER BY claimed.message_key LIMIT 100
-- 43
SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) - claimed.blocked_since
             FROM golden_outbox_claims AS claimed LEFT JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0 AND claimed.message_key > x''  
             ORDER BY claimed.message_key LIMIT 1000
-- 44
SELECT coalesce(max(version), 0), coalesce(max(usable_from), 0) FROM golden_outbox_schema
-- 45
SELECT count(*) FROM (SELECT 1 FROM golden_outbox_messages WHERE message_key = x'6b6b31' LIMIT 1000) AS counted
-- 46
SELECT count(*) FROM golden_outbox_messages AS message WHERE message.id = x'37' AND message.message_key = x'6b6b31'
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier WHERE earlier.message_key = x'6b6b31'
                   ORDER BY earlier.number LIMIT 1)
-- 47
SELECT count(CASE WHEN topic = x'6f7264657273' AND message_key = x'6b6b65796564' AND payload = x'70616964' THEN 1 END)
             FROM golden_outbox_messages WHERE id = x'61' HAVING count(*) > 0 LOCK IN SHARE MODE
-- 48
SELECT count(CASE WHEN topic = x'6f7264657273' AND message_key = x'6b6c6f6e67' AND SHA2(payload, 256) = '08f166476de183f7a1b2874d544d37912aaf8d19b92013e1aafe233ba231024a' THEN 1 END)
             FROM golden_outbox_messages WHERE id = x'67' HAVING count(*) > 0 LOCK IN SHARE MODE
-- 49
SELECT id, message_key, number, topic, headers, payload, attempts, traceparent FROM (
                 SELECT message.id, message.message_key, message.number, message.topic, message.headers, message.payload,
                     firsts.attempts, message.traceparent, sum(length(message.payload)) OVER (ORDER BY CASE WHEN message.message_key > x'' THEN 0 ELSE 1 END, message.message_key, message.id) AS bytes
                 FROM (
                     SELECT message.id, CASE WHEN claimed.attempted = message.id THEN claimed.attempts ELSE CAST(0 AS SIGNED) END AS attempts
                     FROM golden_outbox_claims AS claimed JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
                     WHERE claimed.token = <number>
                       AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                           WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
                     ORDER BY CASE WHEN message.message_key > x'' THEN 0 ELSE 1 END, message.message_key, message.id LIMIT 1000) AS firsts
                 JOIN golden_outbox_messages AS message ON message.id = firsts.id) AS sized
             WHERE bytes - length(payload) < 16777216 ORDER BY CASE WHEN message_key > x'' THEN 0 ELSE 1 END, message_key, id
-- 50
SELECT max(number) FROM golden_outbox_counters WHERE message_key > x'' AND number < (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000) - 86400000000
-- 51
SELECT max(number) FROM golden_outbox_counters WHERE message_key > x'' AND number < CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) - 86400000000
-- 52
SELECT max(sent), count(*) FROM (SELECT sent FROM golden_outbox_history WHERE sent < (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000) - 86400000000
                     ORDER BY sent LIMIT 1000) AS oldest
-- 53
SELECT message_key FROM golden_outbox_claims WHERE message_key = x'6b6b31' AND blocked_since > 0 FOR UPDATE
-- 54
SELECT message_key, number FROM golden_outbox_counters WHERE message_key > x'' AND number <= (SELECT number FROM golden_outbox_counters WHERE message_key = x'') AND number < (CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + 259200000000) - 86400000000
                 ORDER BY message_key LIMIT 1000
-- 55
SELECT message_key, number FROM golden_outbox_counters WHERE message_key > x'' AND number <= (SELECT number FROM golden_outbox_counters WHERE message_key = x'') AND number < CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) - 86400000000
                 ORDER BY message_key LIMIT 1000
-- 56
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b6168656164' AND number <= @idempotent_outbox_floor;
UPDATE golden_outbox_messages SET number = @idempotent_outbox_floor + 1
             WHERE id = x'65' AND number <= @idempotent_outbox_floor
-- 57
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b686561646564' AND number <= @idempotent_outbox_floor;
UPDATE golden_outbox_messages SET number = @idempotent_outbox_floor + 1
             WHERE id = x'63' AND number <= @idempotent_outbox_floor
-- 58
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b6b31' AND number <= @idempotent_outbox_floor;
UPDATE golden_outbox_messages SET number = @idempotent_outbox_floor + 1
             WHERE id = x'31' AND number <= @idempotent_outbox_floor
-- 59
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b6b32' AND number <= @idempotent_outbox_floor;
UPDATE golden_outbox_messages SET number = @idempotent_outbox_floor + 1
             WHERE id = x'32' AND number <= @idempotent_outbox_floor
-- 60
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b6b65796564' AND number <= @idempotent_outbox_floor
-- 61
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b6b65796564' AND number <= @idempotent_outbox_floor;
UPDATE golden_outbox_messages SET number = @idempotent_outbox_floor + 1
             WHERE id = x'61' AND number <= @idempotent_outbox_floor
-- 62
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b6c6f6e67' AND number <= @idempotent_outbox_floor
-- 63
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b6c6f6e67' AND number <= @idempotent_outbox_floor;
UPDATE golden_outbox_messages SET number = @idempotent_outbox_floor + 1
             WHERE id = x'67' AND number <= @idempotent_outbox_floor
-- 64
SELECT number INTO @idempotent_outbox_floor FROM golden_outbox_counters WHERE message_key = x'';
         UPDATE golden_outbox_counters SET number = @idempotent_outbox_floor + 1
         WHERE message_key = x'6b747261636564' AND number <= @idempotent_outbox_floor;
UPDATE golden_outbox_messages SET number = @idempotent_outbox_floor + 1
             WHERE id = x'64' AND number <= @idempotent_outbox_floor
-- 65
SET @idempotent_outbox_0 = x'';
SELECT @idempotent_outbox_1 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_0 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_2 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_1 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_3 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_2 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_4 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_3 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_5 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_4 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_6 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_5 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_7 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_6 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_8 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_7 ORDER BY message_key LIMIT 1)
-- 66
SET @idempotent_outbox_0 = x'6b07';
SELECT @idempotent_outbox_1 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_0 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_2 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_1 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_3 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_2 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_4 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_3 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_5 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_4 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_6 := (SELECT message_key FROM golden_outbox_messages
     …
21416 bytes, sha256 88b83f943c944d563e438e4aad3440b4106385021452129c9174a850f7939f4a
-- 67
SET @idempotent_outbox_0 = x'6b08';
SELECT @idempotent_outbox_1 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_0 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_2 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_1 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_3 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_2 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_4 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_3 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_5 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_4 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_6 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_5 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_7 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_6 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_8 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_7 ORDER BY message_key LIMIT 1)
-- 68
SET @idempotent_outbox_0 = x'6b10';
SELECT @idempotent_outbox_1 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_0 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_2 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_1 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_3 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_2 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_4 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_3 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_5 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_4 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_6 := (SELECT message_key FROM golden_outbox_messages
     …
21416 bytes, sha256 54494096f754af8af86c6d2f99fadc55662efb20f6288be6d7a505683f6f7501
-- 69
SET @idempotent_outbox_0 = x'6b7a';
SELECT @idempotent_outbox_1 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_0 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_2 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_1 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_3 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_2 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_4 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_3 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_5 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_4 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_6 := (SELECT message_key FROM golden_outbox_messages
     …
156776 bytes, sha256 02943cf55352e8af7231dfdc8580ba2fa4cd63ec4c91fa51bf724c61c604fc77
-- 70
SET @idempotent_outbox_0 = x'6c26';
SELECT @idempotent_outbox_1 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_0 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_2 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_1 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_3 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_2 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_4 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_3 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_5 := (SELECT message_key FROM golden_outbox_messages
                         WHERE message_key > @idempotent_outbox_4 ORDER BY message_key LIMIT 1);
SELECT @idempotent_outbox_6 := (SELECT message_key FROM golden_outbox_messages
     …
156776 bytes, sha256 b80b18728fc0e28608a632cbbcb31a874b42ccb8490693e40e69e98364e87e5c
-- 71
START TRANSACTION;
INSERT INTO golden_outbox_history (id, message_key, number, topic, headers, payload, traceparent, created, sent) SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) FROM golden_outbox_messages WHERE id IN (x'36') AND number IN (<number>) FOR UPDATE;
DELETE FROM golden_outbox_messages WHERE id IN (x'36') AND number IN (<number>);
COMMIT
-- 72
START TRANSACTION;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>) FOR UPDATE;
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, attempts = 1, attempted = x'37' WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>);
COMMIT
-- 73
START TRANSACTION;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>) FOR UPDATE;
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, attempts = 2, attempted = x'37', blocked_since = CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), reason = x'69742077617320726566757365643a206e6f' WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>);
COMMIT
-- 74
START TRANSACTION;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'39' AND number = <number>) FOR UPDATE;
             INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), x'69742077617320726566757365643a206e6f' FROM golden_outbox_messages WHERE id = x'39' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31')) FOR UPDATE;
             DELETE FROM golden_outbox_messages WHERE id = x'39' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31'));
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, attempts = 0 WHERE token = <number> AND message_key IN (x'6b6b31');
COMMIT
-- 75
START TRANSACTION;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6c1f') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'3130' AND number = <number>) FOR UPDATE;
             INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED), x'69742077617320726566757365643a206e6f' FROM golden_outbox_messages WHERE id = x'3130' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6c1f')) FOR UPDATE;
             DELETE FROM golden_outbox_messages WHERE id = x'3130' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6c1f'));
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number>, attempts = 0 WHERE token = <number> AND message_key IN (x'6c1f');
COMMIT
-- 76
UPDATE golden_outbox_claims SET lease_end = CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number> WHERE token = <number>
-- 77
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) + <number> WHERE token = <number> AND message_key IN (x'6b6b31')
-- 78
UPDATE golden_outbox_counters SET number = <number> WHERE message_key = x'' AND number < <number>
-- 79
WITH walk (message_key) AS (SELECT x'6b6b31' UNION ALL SELECT x'6b6b32' UNION ALL SELECT x'6c33')
             SELECT first.topic, max(CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED) - first.created)
             FROM walk JOIN golden_outbox_messages AS first ON first.message_key = walk.message_key
             WHERE first.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                 WHERE earlier.message_key = walk.message_key ORDER BY earlier.number LIMIT 1)
             GROUP BY first.topic
