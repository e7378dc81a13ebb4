-- the session of a relay
SELECT set_config('default_transaction_isolation', 'read committed', false)
         WHERE current_setting('default_transaction_isolation') <> 'read committed'
-- 1
BEGIN;
INSERT INTO golden_outbox_history (id, message_key, number, topic, headers, payload, traceparent, created, sent) SELECT id, message_key, number, topic, headers, payload, traceparent, created, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM golden_outbox_messages WHERE id IN (decode('36', 'hex')) AND number IN (<number>) FOR UPDATE;
DELETE FROM golden_outbox_messages WHERE id IN (decode('36', 'hex')) AND number IN (<number>);
COMMIT
-- 2
BEGIN;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex')) AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = decode('37', 'hex') AND number = <number>) FOR UPDATE;
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, attempts = 1, attempted = decode('37', 'hex') WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex')) AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = decode('37', 'hex') AND number = <number>);
COMMIT
-- 3
BEGIN;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex')) AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = decode('37', 'hex') AND number = <number>) FOR UPDATE;
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, attempts = 2, attempted = decode('37', 'hex'), blocked_since = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, reason = decode('69742077617320726566757365643a206e6f', 'hex') WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex')) AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = decode('37', 'hex') AND number = <number>);
COMMIT
-- 4
BEGIN;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex')) AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = decode('39', 'hex') AND number = <number>) FOR UPDATE;
             INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, decode('69742077617320726566757365643a206e6f', 'hex') FROM golden_outbox_messages WHERE id = decode('39', 'hex') AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex'))) FOR UPDATE;
             DELETE FROM golden_outbox_messages WHERE id = decode('39', 'hex') AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex')));
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, attempts = 0 WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex'));
COMMIT
-- 5
BEGIN;
SELECT message_key FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6c1f', 'hex')) AND EXISTS (SELECT 1 FROM golden_outbox_messages WHERE id = decode('3130', 'hex') AND number = <number>) FOR UPDATE;
             INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, decode('69742077617320726566757365643a206e6f', 'hex') FROM golden_outbox_messages WHERE id = decode('3130', 'hex') AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6c1f', 'hex'))) FOR UPDATE;
             DELETE FROM golden_outbox_messages WHERE id = decode('3130', 'hex') AND number = <number> AND EXISTS (SELECT 1 FROM golden_outbox_claims WHERE token = <number> AND message_key IN (decode('6c1f', 'hex')));
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, attempts = 0 WHERE token = <number> AND message_key IN (decode('6c1f', 'hex'));
COMMIT
-- 6
DELETE FROM golden_outbox_claims WHERE lease_end < ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000) AND blocked_since = 0 AND NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.message_key = golden_outbox_claims.message_key)
-- 7
DELETE FROM golden_outbox_claims WHERE lease_end < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND blocked_since = 0 AND NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.message_key = golden_outbox_claims.message_key)
-- 8
DELETE FROM golden_outbox_claims WHERE token = <number> AND (attempts = 0 OR NOT EXISTS
                 (SELECT 1 FROM golden_outbox_messages WHERE golden_outbox_messages.id = golden_outbox_claims.attempted));
             UPDATE golden_outbox_claims SET token = 0, lease_end = 0 WHERE token = <number>
-- 9
DELETE FROM golden_outbox_counters WHERE message_key IN (decode('6b6b31', 'hex'), decode('6b6b32', 'hex')) AND number <= <number>
-- 10
DELETE FROM golden_outbox_history WHERE sent <= <number>
-- 11
DELETE FROM golden_outbox_messages WHERE id IN (decode('31', 'hex'), decode('32', 'hex'), decode('33', 'hex')) AND number IN (<number>, <number>, <number>)
-- 12
DELETE FROM golden_outbox_messages WHERE id IN (decode('34', 'hex')) AND number IN (<number>)
-- 13
DELETE FROM golden_outbox_messages WHERE id IN (decode('35', 'hex')) AND number IN (<number>);
UPDATE golden_outbox_claims SET blocked_since = 0, attempts = 0, reason = NULL
                 WHERE blocked_since > 0 AND attempted IN (decode('35', 'hex'))
-- 14
DELETE FROM golden_outbox_messages WHERE id IN (decode('38', 'hex')) AND number IN (<number>)
-- 15
DELETE FROM golden_outbox_relays WHERE relay = <number> OR sleeps_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 3600000000
-- 16
DELETE FROM golden_outbox_relays WHERE relay = <number> OR sleeps_until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 3600000000;
INSERT INTO golden_outbox_relays (relay, sleeps_until) VALUES (<number>, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 60000000)
-- 17
INSERT INTO golden_outbox_acts (message_key, acted, act, id, person, reason)
             SELECT decode('6b6b31', 'hex'), CASE WHEN coalesce(max(acted), 0) < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint ELSE max(acted) + 1 END,
                 decode('646973636172646564', 'hex'), (SELECT id FROM golden_outbox_messages WHERE message_key = decode('6b6b31', 'hex') ORDER BY number LIMIT 1), NULL, decode('776879', 'hex') FROM golden_outbox_acts WHERE message_key = decode('6b6b31', 'hex');
INSERT INTO golden_outbox_rejected (id, message_key, number, topic, headers, payload, traceparent, created, rejected, reason)
             SELECT id, message_key, number, topic, headers, payload, traceparent, created, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, decode('776879', 'hex') FROM golden_outbox_messages WHERE id = decode('37', 'hex') FOR UPDATE;
             DELETE FROM golden_outbox_messages WHERE id = decode('37', 'hex');
DELETE FROM golden_outbox_claims WHERE message_key = decode('6b6b31', 'hex')
-- 18
INSERT INTO golden_outbox_acts (message_key, acted, act, id, person, reason)
             SELECT decode('6b6b31', 'hex'), CASE WHEN coalesce(max(acted), 0) < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint ELSE max(acted) + 1 END,
                 decode('726573756d6564', 'hex'), (SELECT id FROM golden_outbox_messages WHERE message_key = decode('6b6b31', 'hex') ORDER BY number LIMIT 1), NULL, decode('', 'hex') FROM golden_outbox_acts WHERE message_key = decode('6b6b31', 'hex');
UPDATE golden_outbox_claims SET blocked_since = 0, attempts = 0, next_attempt = 0, reason = NULL
             WHERE message_key = decode('6b6b31', 'hex') AND blocked_since > 0
-- 19
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (decode('6b6b31', 'hex'), <number>, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, 0, 0, 0)
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE golden_outbox_claims.lease_end <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND golden_outbox_claims.next_attempt <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND golden_outbox_claims.blocked_since = 0
-- 20
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (decode('6b6b31', 'hex'), <number>, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, 0, 0, 0), (decode('6b6b32', 'hex'), <number>, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, 0, 0, 0), (decode('6c33', 'hex'), <number>, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, 0, 0, 0)
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE golden_outbox_claims.lease_end <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND golden_outbox_claims.next_attempt <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND golden_outbox_claims.blocked_since = 0
-- 21
INSERT INTO golden_outbox_claims (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES (decode('6b6b31', 'hex'), <number>, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, 0, 0, 0), (decode('6c1f', 'hex'), <number>, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number>, 0, 0, 0)
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE golden_outbox_claims.lease_end <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND golden_outbox_claims.next_attempt <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND golden_outbox_claims.blocked_since = 0
-- 22
SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - claimed.blocked_since
             FROM golden_outbox_claims AS claimed LEFT JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0 AND claimed.message_key > decode('', 'hex')  
             ORDER BY claimed.message_key LIMIT 100
-- 23
SELECT claimed.message_key, message.topic, coalesce(message.id, claimed.attempted), claimed.reason,
                 (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - claimed.blocked_since
             FROM golden_outbox_claims AS claimed LEFT JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                   WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
             WHERE claimed.blocked_since > 0 AND claimed.message_key > decode('', 'hex')  
             ORDER BY claimed.message_key LIMIT 1000
-- 24
SELECT coalesce(max(version), 0), coalesce(max(usable_from), 0) FROM golden_outbox_schema
-- 25
SELECT count(*) FROM (SELECT 1 FROM golden_outbox_messages WHERE message_key = decode('6b6b31', 'hex') LIMIT 1000) AS counted
-- 26
SELECT count(*) FROM golden_outbox_messages AS message WHERE message.id = decode('37', 'hex') AND message.message_key = decode('6b6b31', 'hex')
               AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier WHERE earlier.message_key = decode('6b6b31', 'hex')
                   ORDER BY earlier.number LIMIT 1)
-- 27
SELECT count(CASE WHEN topic = decode('6f7264657273', 'hex') AND message_key = decode('6b6b65796564', 'hex') AND payload = decode('70616964', 'hex') THEN 1 END)
             FROM golden_outbox_messages WHERE id = decode('61', 'hex') HAVING count(*) > 0 
-- 28
SELECT count(CASE WHEN topic = decode('6f7264657273', 'hex') AND message_key = decode('6b6c6f6e67', 'hex') AND payload = decode('0707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070…
600243 bytes, sha256 c7f319ab7927f8e2f2eae2b97358f278e1e54f774c794b0c3e7e16e03f73f854
-- 29
SELECT id, message_key, number, topic, headers, payload, attempts, traceparent FROM (
                 SELECT message.id, message.message_key, message.number, message.topic, message.headers, message.payload,
                     firsts.attempts, message.traceparent, sum(length(message.payload)) OVER (ORDER BY CASE WHEN message.message_key > decode('', 'hex') THEN 0 ELSE 1 END, message.message_key, message.id) AS bytes
                 FROM (
                     SELECT message.id, CASE WHEN claimed.attempted = message.id THEN claimed.attempts ELSE 0::bigint END AS attempts
                     FROM golden_outbox_claims AS claimed JOIN golden_outbox_messages AS message ON message.message_key = claimed.message_key
                     WHERE claimed.token = <number>
                       AND message.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                           WHERE earlier.message_key = claimed.message_key ORDER BY earlier.number LIMIT 1)
                     ORDER BY CASE WHEN message.message_key > decode('', 'hex') THEN 0 ELSE 1 END, message.message_key, message.id LIMIT 1000) AS firsts
                 JOIN golden_outbox_messages AS message ON message.id = firsts.id) AS sized
             WHERE bytes - length(payload) < 16777216 ORDER BY CASE WHEN message_key > decode('', 'hex') THEN 0 ELSE 1 END, message_key, id
-- 30
SELECT max(number) FROM golden_outbox_counters WHERE message_key > decode('', 'hex') AND number < ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000) - 86400000000
-- 31
SELECT max(number) FROM golden_outbox_counters WHERE message_key > decode('', 'hex') AND number < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 86400000000
-- 32
SELECT max(sent), count(*) FROM (SELECT sent FROM golden_outbox_history WHERE sent < ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000) - 86400000000
                     ORDER BY sent LIMIT 1000) AS oldest
-- 33
SELECT message_key FROM golden_outbox_claims WHERE message_key = decode('6b6b31', 'hex') AND blocked_since > 0 FOR UPDATE
-- 34
SELECT message_key, number FROM golden_outbox_counters WHERE message_key > decode('', 'hex') AND number <= (SELECT number FROM golden_outbox_counters WHERE message_key = decode('', 'hex')) AND number < ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000) - 86400000000
                 ORDER BY message_key LIMIT 1000
-- 35
SELECT message_key, number FROM golden_outbox_counters WHERE message_key > decode('', 'hex') AND number <= (SELECT number FROM golden_outbox_counters WHERE message_key = decode('', 'hex')) AND number < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 86400000000
                 ORDER BY message_key LIMIT 1000
-- 36
SELECT pg_advisory_xact_lock(hashtextextended('golden_outbox_schema', 7091));
CREATE TABLE IF NOT EXISTS golden_outbox_schema (
    version bigint NOT NULL PRIMARY KEY,
    usable_from bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS golden_outbox_messages (
    id bytea NOT NULL PRIMARY KEY,
    message_key bytea NOT NULL,
    number bigint NOT NULL,
    topic bytea NOT NULL,
    headers bytea NOT NULL,
    payload bytea NOT NULL,
    traceparent bytea,
    created bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS golden_outbox_order ON golden_outbox_messages (message_key, number);
CREATE TABLE IF NOT EXISTS golden_outbox_counters (
    message_key bytea NOT NULL PRIMARY KEY,
    number bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS golden_outbox_rejected (
    id bytea NOT NULL,
    message_key bytea NOT NULL,
    number bigint NOT NULL,
    topic bytea NOT NULL,
    headers bytea NOT NULL,
    payload bytea NOT NULL,
    traceparent bytea,
    created bigint NOT NULL,
    rejected bigint NOT NULL,
    reason bytea NOT NULL,
    PRIMARY KEY (id, rejected)
);
CREATE TABLE IF NOT EXISTS golden_outbox_history (
    id bytea NOT NULL,
    message_key bytea NOT NULL,
    number bigint NOT NULL,
    topic bytea NOT NULL,
    headers bytea NOT NULL,
    payload bytea NOT NULL,
    traceparent bytea,
    created bigint NOT NULL,
    sent bigint NOT NULL,
    PRIMARY KEY (sent, id)
);
CREATE TABLE IF NOT EXISTS golden_outbox_claims (
    message_key bytea NOT NULL PRIMARY KEY,
    token bigint NOT NULL,
    lease_end bigint NOT NULL,
    attempts bigint NOT NULL,
    attempted bytea,
    next_attempt bigint NOT NULL,
    blocked_since bigint NOT NULL,
    reason bytea
);
CREATE TABLE IF NOT EXISTS golden_outbox_relays (
    relay bigint NOT NULL PRIMARY KEY,
    sleeps_until bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS golden_outbox_acts (
    message_key bytea NOT NULL,
    acted bigint NOT NULL,
    act bytea NOT NULL,
    id bytea,
    person bytea,
    reason bytea NOT NULL,
    PRIMARY KEY (message_key, acted, act)
);
INSERT INTO golden_outbox_counters (message_key, number) VALUES (decode('', 'hex'), 0) ON CONFLICT DO NOTHING;
INSERT INTO golden_outbox_schema (version, usable_from) VALUES (2, 1) ON CONFLICT DO NOTHING;

-- 37
UPDATE golden_outbox_claims SET lease_end = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number> WHERE token = <number>
-- 38
UPDATE golden_outbox_claims SET token = 0, lease_end = 0, next_attempt = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + <number> WHERE token = <number> AND message_key IN (decode('6b6b31', 'hex'))
-- 39
UPDATE golden_outbox_counters SET number = <number> WHERE message_key = decode('', 'hex') AND number < <number>
-- 40
WITH  written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT $1, $2, $3, $4, $5, $6, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint 
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 41
WITH  written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('3130', 'hex'), decode('6c1f', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint 
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 42
WITH  written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('33', 'hex'), decode('6c33', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint 
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 43
WITH  written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('62', 'hex'), decode('6c22', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint 
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 44
WITH  written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('66', 'hex'), decode('6c26', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000), ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000) 
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000))
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 45
WITH RECURSIVE walk (message_key, step) AS (
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > decode('', 'hex')
              ORDER BY next.message_key LIMIT 1), 1
             UNION ALL
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > walk.message_key
              ORDER BY next.message_key LIMIT 1), step + 1 FROM walk WHERE walk.message_key IS NOT NULL AND step < 1000)
         SELECT walk.message_key,
             CASE WHEN claimed.message_key IS NULL OR (claimed.lease_end <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND claimed.next_attempt <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND claimed.blocked_since = 0) THEN 1::bigint ELSE 0::bigint END
         FROM walk LEFT JOIN golden_outbox_claims AS claimed ON claimed.message_key = walk.message_key
         WHERE walk.message_key IS NOT NULL ORDER BY walk.message_key
-- 46
WITH RECURSIVE walk (message_key, step) AS (
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > decode('6b08', 'hex')
              ORDER BY next.message_key LIMIT 1), 1
             UNION ALL
             SELECT (SELECT next.message_key FROM golden_outbox_messages AS next WHERE next.message_key > walk.message_key
              ORDER BY next.message_key LIMIT 1), step + 1 FROM walk WHERE walk.message_key IS NOT NULL AND step < 1000)
         SELECT walk.message_key,
             CASE WHEN claimed.message_key IS NULL OR (claimed.lease_end <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND claimed.next_attempt <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AND claimed.blocked_since = 0) THEN 1::bigint ELSE 0::bigint END
         FROM walk LEFT JOIN golden_outbox_claims AS claimed ON claimed.message_key = walk.message_key
         WHERE walk.message_key IS NOT NULL ORDER BY walk.message_key
-- 47
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT $2, greatest(((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000), 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000))
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT $1, $2, $3, $4, $5, $6, counted.taken, ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000) FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000))
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 48
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT $2, greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT $1, $2, $3, $4, $5, $6, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 49
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6168656164', 'hex'), greatest(((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000), 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000))
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('65', 'hex'), decode('6b6168656164', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000) FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 259200000000))
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 50
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b686561646564', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('63', 'hex'), decode('6b686561646564', 'hex'), decode('6f7264657273', 'hex'), decode('046e616d650576616c7565', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 51
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b31', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('31', 'hex'), decode('6b6b31', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 52
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b31', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('34', 'hex'), decode('6b6b31', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 53
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b31', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('35', 'hex'), decode('6b6b31', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 54
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b31', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('36', 'hex'), decode('6b6b31', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 55
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b31', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('37', 'hex'), decode('6b6b31', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 56
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b31', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('38', 'hex'), decode('6b6b31', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 57
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b31', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('39', 'hex'), decode('6b6b31', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 58
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b32', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('32', 'hex'), decode('6b6b32', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 59
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b6b65796564', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('61', 'hex'), decode('6b6b65796564', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), NULL, counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 60
WITH counted AS (
                     INSERT INTO golden_outbox_counters AS counter (message_key, number)
                     SELECT decode('6b747261636564', 'hex'), greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 1 + (SELECT number FROM golden_outbox_counters WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
                     RETURNING number AS taken), written AS (
             INSERT INTO golden_outbox_messages (id, message_key, topic, headers, payload, traceparent, number, created)
             SELECT decode('64', 'hex'), decode('6b747261636564', 'hex'), decode('6f7264657273', 'hex'), decode('', 'hex'), decode('70616964', 'hex'), decode('30302d30616637363531393136636434336464383434386562323131633830333139632d623761643662373136393230333333312d3031', 'hex'), counted.taken, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM counted
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM golden_outbox_relays WHERE sleeps_until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
             THEN pg_notify('golden_outbox_messages', '')::text END FROM written
-- 61
WITH walk (message_key) AS (VALUES (decode('6b6b31', 'hex')), (decode('6b6b32', 'hex')), (decode('6c33', 'hex')))
             SELECT first.topic, max((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - first.created)
             FROM walk JOIN golden_outbox_messages AS first ON first.message_key = walk.message_key
             WHERE first.number = (SELECT earlier.number FROM golden_outbox_messages AS earlier
                 WHERE earlier.message_key = walk.message_key ORDER BY earlier.number LIMIT 1)
             GROUP BY first.topic
