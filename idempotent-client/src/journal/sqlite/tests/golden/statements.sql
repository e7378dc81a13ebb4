-- 1
CREATE TABLE IF NOT EXISTS goldencalls_calls_schema (version INTEGER NOT NULL PRIMARY KEY) STRICT;
-- 2
SELECT coalesce(max(version), 0) FROM goldencalls_calls_schema
-- 3
SELECT 1 FROM sqlite_master WHERE name = 'goldencalls_calls' COLLATE NOCASE
-- 4
CREATE TABLE goldencalls_calls (
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
CREATE INDEX goldencalls_calls_open ON goldencalls_calls (created) WHERE ending IS NULL;
CREATE INDEX goldencalls_calls_over ON goldencalls_calls (created) WHERE ending IS NOT NULL;
INSERT INTO goldencalls_calls_schema (version) VALUES (1);
-- 5
CREATE TABLE goldencalls_calls_new (
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
INSERT INTO goldencalls_calls_new
    SELECT origin, '', call_key, method, url, headers, NULL, digest, body, created, deadline, ending, status,
        answer_headers, answer_body FROM goldencalls_calls;
DROP TABLE goldencalls_calls;
ALTER TABLE goldencalls_calls_new RENAME TO goldencalls_calls;
CREATE INDEX goldencalls_calls_open ON goldencalls_calls (created) WHERE ending IS NULL;
CREATE INDEX goldencalls_calls_over ON goldencalls_calls (created) WHERE ending IS NOT NULL;
INSERT INTO goldencalls_calls_schema (version) VALUES (2);
-- 6
ALTER TABLE goldencalls_calls ADD COLUMN begun BLOB;
INSERT INTO goldencalls_calls_schema (version) VALUES (3);
-- 7
INSERT INTO goldencalls_calls (origin, account, call_key, method, url, headers, caller, begun, digest, body, created, deadline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1
-- 8
SELECT origin, account, call_key, method, url, headers, caller, digest, body, created, deadline, ending, status, answer_headers, answer_body, begun FROM goldencalls_calls WHERE origin = ? AND account = ? AND call_key = ?
-- 9
UPDATE goldencalls_calls SET begun = ? WHERE origin = ? AND account = ? AND call_key = ? AND ending IS NULL AND begun IS ? RETURNING 1
-- 10
SELECT origin, account, call_key, method, url, headers, caller, digest, body, created, deadline, ending, status, answer_headers, answer_body, begun, rowid FROM goldencalls_calls WHERE ending IS NULL ORDER BY created, origin, account, call_key LIMIT ?
-- 11
UPDATE goldencalls_calls SET caller = ?, ending = ?, status = ?, answer_headers = ?, answer_body = ?, body = NULL WHERE origin = ? AND account = ? AND call_key = ?
-- 12
DELETE FROM goldencalls_calls WHERE origin = ? AND account = ? AND call_key = ? AND ending IS NULL AND begun IS ? RETURNING 1
-- 13
DELETE FROM goldencalls_calls WHERE origin = ? AND account = ? AND call_key = ?
-- 14
DELETE FROM goldencalls_calls WHERE rowid IN (SELECT rowid FROM goldencalls_calls WHERE ending IS NOT NULL AND created < ? LIMIT ?) RETURNING 1
