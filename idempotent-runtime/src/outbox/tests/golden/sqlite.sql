-- the session of a relay
SELECT 1
-- 1
BEGIN IMMEDIATE;
INSERT INTO golden_outbox_history (id, message_key, number, topic, headers, payload, traceparent, created, sent) SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(unixepoch('subsec') * 1000000 AS INTEGER) FROM golden_outbox_messages WHERE id IN (x'36') AND number IN (<number>) ;
DELETE FROM golden_outbox_messages WHERE id IN (x'36') AND number IN (<number>);
COMMIT
-- 2
BEGIN IMMEDIATE;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>) ;
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, attempts = 1, attempted = x'37' WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>);
COMMIT
-- 3
BEGIN IMMEDIATE;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>) ;
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, attempts = 2, attempted = x'37', blocked_since = CAST(unixepoch('subsec') * 1000000 AS INTEGER), reason = x'69742077617320726566757365643a206e6f' WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'37' AND number = <number>);
COMMIT
-- 4
BEGIN IMMEDIATE;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'39' AND number = <number>) ;
             INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(unixepoch('subsec') * 1000000 AS INTEGER), x'69742077617320726566757365643a206e6f' FROM golden_outbox_messages WHERE id = x'39' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31')) ;
             DELETE FROM golden_outbox_messages WHERE id = x'39' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6b6b31'));
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, attempts = 0 WHERE token = <number> AND message_key IN (x'6b6b31');
COMMIT
-- 5
BEGIN IMMEDIATE;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6c1f') AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = x'3130' AND number = <number>) ;
             INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(unixepoch('subsec') * 1000000 AS INTEGER), x'69742077617320726566757365643a206e6f' FROM golden_outbox_messages WHERE id = x'3130' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6c1f')) ;
             DELETE FROM golden_outbox_messages WHERE id = x'3130' AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (x'6c1f'));
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, attempts = 0 WHERE token = <number> AND message_key IN (x'6c1f');
COMMIT
-- 6
CREATE TABLE IF NOT EXISTS golden_outbox_schema (
    version INTEGER NOT NULL PRIMARY KEY,
    usable_from INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS golden_outbox_messages (
    id BLOB NOT NULL PRIMARY KEY,
    message_key BLOB NOT NULL,
    number INTEGER NOT NULL,
    topic BLOB NOT NULL,
    headers BLOB NOT NULL,
    payload BLOB NOT NULL,
    traceparent BLOB,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS golden_outbox_order ON golden_outbox_messages (message_key, number);
CREATE TABLE IF NOT EXISTS golden_outbox_counters (
    message_key BLOB NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS golden_outbox_rejected (
    id BLOB NOT NULL,
    message_key BLOB NOT NULL,
    number INTEGER NOT NULL,
    topic BLOB NOT NULL,
    headers BLOB NOT NULL,
    payload BLOB NOT NULL,
    traceparent BLOB,
    created INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    reason BLOB NOT NULL,
    PRIMARY KEY (id, rejected)
) STRICT;
CREATE TABLE IF NOT EXISTS golden_outbox_history (
    id BLOB NOT NULL,
    message_key BLOB NOT NULL,
    number INTEGER NOT NULL,
    topic BLOB NOT NULL,
    headers BLOB NOT NULL,
    payload BLOB NOT NULL,
    traceparent BLOB,
    created INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    PRIMARY KEY (sent, id)
) STRICT;
CREATE TABLE IF NOT EXISTS golden_outbox_claims (
    message_key BLOB NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL,
    lease_end INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    attempted BLOB,
    next_attempt INTEGER NOT NULL,
    blocked_since INTEGER NOT NULL,
    reason BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS golden_outbox_relays (
    relay INTEGER NOT NULL PRIMARY KEY,
    sleeps_until INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS golden_outbox_acts (
    message_key BLOB NOT NULL,
    acted INTEGER NOT NULL,
    act BLOB NOT NULL,
    id BLOB,
    person BLOB,
    reason BLOB NOT NULL,
    PRIMARY KEY (message_key, acted, act)
) STRICT;
INSERT INTO golden_outbox_counters (message_key, number) VALUES (x'', 0) ON CONFLICT DO NOTHING;
INSERT INTO golden_outbox_schema (version, usable_from) VALUES (2, 1) ON CONFLICT DO NOTHING;

-- 7
DELETE FROM golden_outbox_claims WHERE lease_end < (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000) AND blocked_since = 0 AND NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.message_key = golden_outbox_claims.message_key)
-- 8
DELETE FROM golden_outbox_claims WHERE lease_end < CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND blocked_since = 0 AND NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.message_key = golden_outbox_claims.message_key)
-- 9
DELETE FROM golden_outbox_claims WHERE token = <number> AND (attempts = 0 OR NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.id = golden_outbox_claims.attempted));
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0 WHERE token = <number>
-- 10
DELETE FROM golden_outbox_counters WHERE message_key IN (x'6b6b31', x'6b6b32') AND number <= <number>
-- 11
DELETE FROM golden_outbox_history WHERE sent <= <number>
-- 12
DELETE FROM golden_outbox_messages WHERE id IN (x'31', x'32', x'33') AND number IN (<number>, <number>, <number>)
-- 13
DELETE FROM golden_outbox_messages WHERE id IN (x'34') AND number IN (<number>)
-- 14
DELETE FROM golden_outbox_messages WHERE id IN (x'35') AND number IN (<number>);
UPDATE golden_outbox_claims SET blocked_since = 0, attempts = 0, reason = NULL
                 WHERE blocked_since > 0 AND attempted IN (x'35')
-- 15
DELETE FROM golden_outbox_messages WHERE id IN (x'38') AND number IN (<number>)
-- 16
INSERT INTO golden_outbox_acts (message_key, acted, act, id, person, reason)
             SELECT x'6b6b31', CASE WHEN coalesce(max(acted), 0) < CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN CAST(unixepoch('subsec') * 1000000 AS INTEGER) ELSE max(acted) + 1 END,
                 x'646973636172646564', (SELECT id FROM golden_outbox_messages WHERE message_key = x'6b6b31' ORDER BY number LIMIT 1), NULL, x'776879' FROM golden_outbox_acts WHERE message_key = x'6b6b31';
INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, CAST(unixepoch('subsec') * 1000000 AS INTEGER), x'776879' FROM golden_outbox_messages WHERE id = x'37' ;
             DELETE FROM golden_outbox_messages WHERE id = x'37';
DELETE FROM golden_outbox_claims WHERE message_key = x'6b6b31'
-- 17
INSERT INTO golden_outbox_acts (message_key, acted, act, id, person, reason)
             SELECT x'6b6b31', CASE WHEN coalesce(max(acted), 0) < CAST(unixepoch('subsec') * 1000000 AS INTEGER) THEN CAST(unixepoch('subsec') * 1000000 AS INTEGER) ELSE max(acted) + 1 END,
                 x'726573756d6564', (SELECT id FROM golden_outbox_messages WHERE message_key = x'6b6b31' ORDER BY number LIMIT 1), NULL, x'' FROM golden_outbox_acts WHERE message_key = x'6b6b31';
UPDATE golden_outbox_claims SET blocked_since = 0, attempts = 0, next_attempt = 0, reason = NULL
             WHERE message_key = x'6b6b31' AND blocked_since > 0
-- 18
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (x'6b6b31', <number>, CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, 0, 0, 0)
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE golden_outbox_claims.lease_end <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND golden_outbox_claims.next_attempt <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND golden_outbox_claims.blocked_since = 0
-- 19
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (x'6b6b31', <number>, CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, 0, 0, 0), (x'6b6b32', <number>, CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, 0, 0, 0), (x'6c33', <number>, CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, 0, 0, 0)
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE golden_outbox_claims.lease_end <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND golden_outbox_claims.next_attempt <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND golden_outbox_claims.blocked_since = 0
-- 20
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (x'6b6b31', <number>, CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, 0, 0, 0), (x'6c1f', <number>, CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number>, 0, 0, 0)
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE golden_outbox_claims.lease_end <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND golden_outbox_claims.next_attempt <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND golden_outbox_claims.blocked_since = 0
-- 21
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6168656164', max((CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'65', x'6b6168656164', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6168656164'), (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 22
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b686561646564', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'63', x'6b686561646564', x'6f7264657273', x'046e616d650576616c7565', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b686561646564'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 23
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b31', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'31', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b31'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 24
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b31', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'34', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b31'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 25
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b31', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'35', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b31'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 26
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b31', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'36', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b31'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 27
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b31', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'37', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b31'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 28
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b31', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'38', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b31'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 29
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b31', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'39', x'6b6b31', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b31'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 30
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b32', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'32', x'6b6b32', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b32'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 31
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6b65796564', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'61', x'6b6b65796564', x'6f7264657273', x'', x'70616964', NULL, (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b6b65796564'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 32
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6c6f6e67', max((CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'69', x'6b6c6f6e67', x'6f7264657273', x'', x'070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707…
600807 bytes, sha256 7990252b6ef0fe053ae530540a9286be51f1f54523b3520918f5208c0699f311
-- 33
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b6c6f6e67', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'67', x'6b6c6f6e67', x'6f7264657273', x'', x'0707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707…
600756 bytes, sha256 237250823e2494643cd1d7cd11e73daa77958fe4b27ecc1fc8340650f0349dfa
-- 34
INSERT INTO golden_outbox_counters (message_key, number)
                     SELECT x'6b747261636564', max(CAST(unixepoch('subsec') * 1000000 AS INTEGER), 1 + coalesce((SELECT number FROM golden_outbox_counters WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER));
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'64', x'6b747261636564', x'6f7264657273', x'', x'70616964', x'30302d30616637363531393136636434336464383434386562323131633830333139632d623761643662373136393230333333312d3031', (SELECT number FROM golden_outbox_counters WHERE message_key = x'6b747261636564'), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 35
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'3130', x'6c1f', x'6f7264657273', x'', x'70616964', NULL, CAST(unixepoch('subsec') * 1000000 AS INTEGER), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 36
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'33', x'6c33', x'6f7264657273', x'', x'70616964', NULL, CAST(unixepoch('subsec') * 1000000 AS INTEGER), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 37
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'62', x'6c22', x'6f7264657273', x'', x'70616964', NULL, CAST(unixepoch('subsec') * 1000000 AS INTEGER), CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 38
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'66', x'6c26', x'6f7264657273', x'', x'70616964', NULL, (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000), (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000) WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1
-- 39
INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT x'68', x'6c28', x'6f7264657273', x'046e616d650576616c7565', x'070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707…
600357 bytes, sha256 0d37d482e6f55a8bcd54b1e51df698643f427ed32e495b6b8aa59678fbb1e1ab
-- 40
SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 CAST(unixepoch('subsec') * 1000000 AS INTEGER) - claimed.blocked_since
             FROM golden_outbox_claims AS claimed LEFT JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0 AND claimed.message_key > x''  
             ORDER BY claimed.message_key LIMIT 100
-- 41
SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 CAST(unixepoch('subsec') * 1000000 AS INTEGER) - claimed.blocked_since
             FROM golden_outbox_claims AS claimed LEFT JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0 AND claimed.message_key > x''  
             ORDER BY claimed.message_key LIMIT 1000
-- 42
SELECT coalesce(max(version), 0), coalesce(max(usable_from), 0) FROM golden_outbox_schema
-- 43
SELECT count(*) FROM (SELECT 1 FROM golden_outbox_messages WHERE message_key = x'6b6b31' LIMIT 1000) AS counted
-- 44
SELECT count(*) FROM golden_outbox_messages AS message WHERE message.id = x'37' AND message.message_key = x'6b6b31'
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier WHERE earlier.message_key = x'6b6b31'
                   ORDER BY earlier.number LIMIT 1)
-- 45
SELECT count(CASE WHEN topic = x'6f7264657273' AND message_key = x'6b6b65796564' AND payload = x'70616964' THEN 1 END)
             FROM golden_outbox_messages WHERE id = x'61' HAVING count(*) > 0 
-- 46
SELECT count(CASE WHEN topic = x'6f7264657273' AND message_key = x'6b6c6f6e67' AND payload = x'07070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070…
600187 bytes, sha256 797a899a2242ca1887efc6cf1da1012d45d67dc18cb126a21b0b5df6ac628bb6
-- 47
SELECT id, message_key, number, topic, headers, payload, attempts, traceparent FROM (
                 SELECT message.id, message.message_key, message.number, message.topic, message.headers, message.payload,
                     firsts.attempts, message.traceparent, sum(length(message.payload)) OVER (ORDER BY CASE WHEN message.message_key > x'' THEN 0 ELSE 1 END, message.message_key, message.id) AS bytes
                 FROM (
                     SELECT message.id, CASE WHEN claimed.attempted = message.id THEN claimed.attempts ELSE 0 END AS attempts
                     FROM golden_outbox_claims AS claimed JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
                     WHERE claimed.token = <number>
                       AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                           WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
                     ORDER BY CASE WHEN message.message_key > x'' THEN 0 ELSE 1 END, message.message_key, message.id LIMIT 1000) AS firsts
                 JOIN golden_outbox_messages AS message ON message.id = firsts.id) AS sized
             WHERE bytes - length(payload) < 16777216 ORDER BY CASE WHEN message_key > x'' THEN 0 ELSE 1 END, message_key, id
-- 48
SELECT max(number) FROM golden_outbox_counters WHERE message_key > x'' AND number < (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000) - 86400000000
-- 49
SELECT max(number) FROM golden_outbox_counters WHERE message_key > x'' AND number < CAST(unixepoch('subsec') * 1000000 AS INTEGER) - 86400000000
-- 50
SELECT max(sent), count(*) FROM (SELECT sent FROM golden_outbox_history WHERE sent < (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000) - 86400000000
                     ORDER BY sent LIMIT 1000) AS oldest
-- 51
SELECT message_key FROM golden_outbox_claims WHERE message_key = x'6b6b31' AND blocked_since > 0 
-- 52
SELECT message_key, number FROM golden_outbox_counters WHERE message_key > x'' AND number <= (SELECT number FROM golden_outbox_counters WHERE message_key = x'') AND number < (CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 259200000000) - 86400000000
                 ORDER BY message_key LIMIT 1000
-- 53
SELECT message_key, number FROM golden_outbox_counters WHERE message_key > x'' AND number <= (SELECT number FROM golden_outbox_counters WHERE message_key = x'') AND number < CAST(unixepoch('subsec') * 1000000 AS INTEGER) - 86400000000
                 ORDER BY message_key LIMIT 1000
-- 54
UPDATE golden_outbox_claims SET lease_end = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number> WHERE token = <number>
-- 55
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = CAST(unixepoch('subsec') * 1000000 AS INTEGER) + <number> WHERE token = <number> AND message_key IN (x'6b6b31')
-- 56
UPDATE golden_outbox_counters SET number = <number> WHERE message_key = x'' AND number < <number>
-- 57
WITH RECURSIVE walk (message_key, step) AS (
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > x''
              ORDER BY next.message_key LIMIT 1), 1
             UNION ALL
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > walk.message_key
              ORDER BY next.message_key LIMIT 1), step + 1 FROM walk WHERE walk.message_key IS NOT NULL AND step < 1000)
         SELECT walk.message_key,
             CASE WHEN claimed.message_key IS NULL OR (claimed.lease_end <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND claimed.next_attempt <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND claimed.blocked_since = 0) THEN 1 ELSE 0 END
         FROM walk LEFT JOIN golden_outbox_claims AS claimed ON claimed.message_key = walk.message_key
         WHERE walk.message_key IS NOT NULL ORDER BY walk.message_key
-- 58
WITH RECURSIVE walk (message_key, step) AS (
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > x'6b08'
              ORDER BY next.message_key LIMIT 1), 1
             UNION ALL
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > walk.message_key
              ORDER BY next.message_key LIMIT 1), step + 1 FROM walk WHERE walk.message_key IS NOT NULL AND step < 1000)
         SELECT walk.message_key,
             CASE WHEN claimed.message_key IS NULL OR (claimed.lease_end <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND claimed.next_attempt <= CAST(unixepoch('subsec') * 1000000 AS INTEGER) AND claimed.blocked_since = 0) THEN 1 ELSE 0 END
         FROM walk LEFT JOIN golden_outbox_claims AS claimed ON claimed.message_key = walk.message_key
         WHERE walk.message_key IS NOT NULL ORDER BY walk.message_key
-- 59
WITH walk (message_key) AS (VALUES (x'6b6b31'), (x'6b6b32'), (x'6c33'))
             SELECT first.topic, max(CAST(unixepoch('subsec') * 1000000 AS INTEGER) - first.created)
             FROM walk JOIN golden_outbox_messages AS first ON first.message_key = walk.message_key
             WHERE first.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                 WHERE earlier.message_key = walk.message_key ORDER BY earlier.number LIMIT 1)
             GROUP BY first.topic
