-- lock
BEGIN IMMEDIATE
-- step 1, usable from 1
CREATE TABLE golden_calls (
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
CREATE INDEX golden_calls_open ON golden_calls (created) WHERE ending IS NULL;
CREATE INDEX golden_calls_over ON golden_calls (created) WHERE ending IS NOT NULL;

-- step 2, usable from 2
CREATE TABLE golden_calls_new (
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
INSERT INTO golden_calls_new
    SELECT origin, '', call_key, method, url, headers, NULL, digest, body, created, deadline, ending, status,
        answer_headers, answer_body FROM golden_calls;
DROP TABLE golden_calls;
ALTER TABLE golden_calls_new RENAME TO golden_calls;
CREATE INDEX golden_calls_open ON golden_calls (created) WHERE ending IS NULL;
CREATE INDEX golden_calls_over ON golden_calls (created) WHERE ending IS NOT NULL;

-- step 3, usable from 3
ALTER TABLE golden_calls ADD COLUMN begun BLOB;

-- endings
0, 1, 2
