-- 1
CREATE TABLE IF NOT EXISTS goldenschema_calls_schema (version INTEGER NOT NULL PRIMARY KEY) STRICT;
-- 2
SELECT coalesce(max(version), 0) FROM goldenschema_calls_schema
-- 3
SELECT 1 FROM sqlite_master WHERE name = 'goldenschema_calls' COLLATE NOCASE
-- 4
CREATE TABLE goldenschema_calls (
    origin TEXT NOT NULL,
    call_key TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers BLOB NOT NULL,
    digest BLOB,
    body BLOB,
    created INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ending INTEGER,
    status INTEGER,
    answer_headers BLOB,
    answer_body BLOB,
    PRIMARY KEY (origin, call_key)
) STRICT;
CREATE INDEX goldenschema_calls_open ON goldenschema_calls (created) WHERE ending IS NULL;
CREATE INDEX goldenschema_calls_over ON goldenschema_calls (created) WHERE ending IS NOT NULL;
INSERT INTO goldenschema_calls_schema (version) VALUES (1);
-- 5
CREATE TABLE goldenschema_calls_new (
    origin TEXT NOT NULL,
    account TEXT NOT NULL,
    call_key TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers BLOB NOT NULL,
    caller BLOB,
    digest BLOB,
    body BLOB,
    created INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ending INTEGER,
    status INTEGER,
    answer_headers BLOB,
    answer_body BLOB,
    PRIMARY KEY (origin, account, call_key)
) STRICT;
INSERT INTO goldenschema_calls_new
    SELECT origin, '', call_key, method, url, headers, NULL, digest, body, created, deadline, ending, status,
        answer_headers, answer_body FROM goldenschema_calls;
DROP TABLE goldenschema_calls;
ALTER TABLE goldenschema_calls_new RENAME TO goldenschema_calls;
CREATE INDEX goldenschema_calls_open ON goldenschema_calls (created) WHERE ending IS NULL;
CREATE INDEX goldenschema_calls_over ON goldenschema_calls (created) WHERE ending IS NOT NULL;
INSERT INTO goldenschema_calls_schema (version) VALUES (2);
-- 6
ALTER TABLE goldenschema_calls ADD COLUMN begun BLOB;
INSERT INTO goldenschema_calls_schema (version) VALUES (3);
-- 7
SELECT 1 FROM goldenschema_calls LIMIT 1
-- 8
DROP TABLE goldenschema_calls
