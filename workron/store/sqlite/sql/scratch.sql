-- scratch: create temporary tables that live between the statements of one operation, in memory.
-- An operation fills them, and shared statements process them: `ended_claim` by end_claims,
-- `unblocked_job` by enqueue, `ended_job` and `downstream_update` by propagate_ends.

-- name: attempt_report
-- The reports of a worker, one row each, so that a value that SQLite refuses is found with its row.
-- The checks refuse what would be refused later, together with other reports, and what PostgreSQL
-- cannot store.
CREATE TEMP TABLE attempt_report (
    number     INTEGER PRIMARY KEY,
    job       INTEGER NOT NULL,
    claim     TEXT NOT NULL,
    fence     INTEGER NOT NULL,
    outcome   TEXT NOT NULL
        CONSTRAINT "outcome is Succeeded, Failed or Retry"
        CHECK (outcome = 'Succeeded' OR outcome = 'Failed' OR outcome = 'Retry'),
    reason    TEXT
        CONSTRAINT "a failure has a reason" CHECK (outcome <> 'Failed' OR reason IS NOT NULL)
        CONSTRAINT "reason is a failure reason"
        CHECK (outcome = 'Succeeded' OR reason IS NULL OR reason IN (
            'ExitCode', 'Signal', 'Timeout', 'DeadlineExceeded', 'WorkerLost', 'CommandNotFound',
            'OutOfMemory', 'InputsTooLarge', 'ResultRefused', 'MemberFailed')),
    message   TEXT
        CONSTRAINT "message has no NUL" CHECK (message IS NULL OR instr(message, char(0)) = 0),
    exit_code INTEGER,
    delay     INTEGER NOT NULL,
    result    TEXT
        CONSTRAINT "result has at most 65536 bytes"
        CHECK (result IS NULL OR length(CAST(result AS BLOB)) <= 65536),
    output    BLOB NOT NULL
        CONSTRAINT "output has at most 1048576 bytes" CHECK (length(output) <= 1048576)
)

-- name: selected_job
-- The jobs of a bounded step.
CREATE TEMP TABLE selected_job (
    job INTEGER PRIMARY KEY
)

-- name: new_claim
-- New or repeated claims; `number` is the position of the claim id, from 1.
CREATE TEMP TABLE new_claim (
    number    INTEGER PRIMARY KEY,
    job      INTEGER NOT NULL,
    worker   INTEGER NOT NULL,
    pool     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempt  INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses   INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    alone    INTEGER NOT NULL
)

-- name: ended_claim
-- Claims that end. `state` is the end of the job, or null if it goes on; `number` is that of its
-- report.
CREATE TEMP TABLE ended_claim (
    job        INTEGER PRIMARY KEY,
    claim      TEXT NOT NULL,
    worker     INTEGER NOT NULL,
    name       TEXT,
    pool       INTEGER NOT NULL,
    priority   INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    losses     INTEGER NOT NULL,
    fence      INTEGER NOT NULL,
    alone      INTEGER NOT NULL,
    signal       TEXT,
    claimed_at INTEGER NOT NULL,
    outcome    TEXT NOT NULL,
    state      TEXT,
    reason     TEXT,
    message    TEXT,
    exit_code  INTEGER,
    due        INTEGER,
    awaits_proof   INTEGER NOT NULL DEFAULT 0,
    number      INTEGER
)

-- name: unblocked_job
-- Jobs that wait for nothing, or only for a time; `destination` is the table where they go.
CREATE TEMP TABLE unblocked_job (
    job      INTEGER PRIMARY KEY,
    due      INTEGER,
    reason   TEXT,
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses   INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    alone    INTEGER NOT NULL,
    awaits_proof INTEGER NOT NULL DEFAULT 0,
    pool     INTEGER,
    destination TEXT
)

-- name: ended_job
-- Jobs that end now.
CREATE TEMP TABLE ended_job (
    job       INTEGER PRIMARY KEY,
    state     TEXT NOT NULL,
    reason    TEXT,
    message   TEXT,
    exit_code INTEGER,
    attempts  INTEGER NOT NULL,
    failures  INTEGER NOT NULL,
    losses    INTEGER NOT NULL,
    worker    TEXT
)

-- name: downstream_update
-- Waiting jobs, the number of ends to subtract, and their highest verdict.
CREATE TEMP TABLE downstream_update (
    downstream   INTEGER PRIMARY KEY,
    count    INTEGER NOT NULL,
    verdict INTEGER NOT NULL
)

-- name: new_edge
-- Edges between runs.
CREATE TEMP TABLE new_edge (
    upstream    INTEGER NOT NULL,
    downstream     INTEGER NOT NULL,
    condition TEXT NOT NULL
)
