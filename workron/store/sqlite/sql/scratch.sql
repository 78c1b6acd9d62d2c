-- scratch: sets that live between the statements of one verb, private to the connection, and in memory.
-- They are emptied before every verb. A verb fills them, and the shared files work them off:
-- `fallen` by end_claims, `moving` by place, `ended` and `told` by settle_ends.

-- name: attempt_report
-- The ends as a worker worded them, one row each, so that a value which SQLite refuses is found with
-- its row. The checks say what would be refused later, where neighbours would fail with it, and what no
-- reader would understand; a NUL is refused because PostgreSQL cannot keep it either.
CREATE TEMP TABLE attempt_report (
    place     INTEGER PRIMARY KEY,
    job       INTEGER NOT NULL,
    claim     TEXT NOT NULL,
    fence     INTEGER NOT NULL,
    outcome   TEXT NOT NULL
        CONSTRAINT "the outcome of a report is Succeeded, Failed or Retry"
        CHECK (outcome = 'Succeeded' OR outcome = 'Failed' OR outcome = 'Retry'),
    reason    TEXT
        CONSTRAINT "a failure has a reason" CHECK (outcome <> 'Failed' OR reason IS NOT NULL)
        CONSTRAINT "the reason is one by which a job can fail"
        CHECK (outcome = 'Succeeded' OR reason IS NULL OR reason IN (
            'ExitCode', 'Signal', 'Timeout', 'DeadlineExceeded', 'WorkerLost', 'CommandNotFound',
            'OutOfMemory', 'InputsTooLarge', 'ResultRefused', 'MemberFailed')),
    message   TEXT
        CONSTRAINT "a message has no NUL" CHECK (message IS NULL OR instr(message, char(0)) = 0),
    exit_code INTEGER,
    delay     INTEGER NOT NULL,
    result    TEXT
        CONSTRAINT "a result has at most 65536 bytes"
        CHECK (result IS NULL OR length(CAST(result AS BLOB)) <= 65536),
    output    BLOB NOT NULL
        CONSTRAINT "an output has at most 1048576 bytes" CHECK (length(output) <= 1048576)
)

-- name: selected_job
-- The jobs that a bounded step works on.
CREATE TEMP TABLE selected_job (
    job INTEGER PRIMARY KEY
)

-- name: new_claim
-- Claims as they are made, or were by an earlier call: each under the number, from 1, of its claim id.
CREATE TEMP TABLE new_claim (
    place    INTEGER PRIMARY KEY,
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
-- Claims that are over. `state` is the end of the job, or null when it goes on, `place` the report that
-- ended it.
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
    place      INTEGER
)

-- name: unblocked_job
-- Jobs with nothing left to wait for, or with a time to wait for only; `place` is where they go.
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
    place    TEXT
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
-- Waiting jobs, how much less they wait for, and the gravest verdict that they were told.
CREATE TEMP TABLE downstream_update (
    downstream   INTEGER PRIMARY KEY,
    count    INTEGER NOT NULL,
    verdict INTEGER NOT NULL
)

-- name: new_edge
-- Waits for other runs that are being tied to them.
CREATE TEMP TABLE new_edge (
    upstream    INTEGER NOT NULL,
    downstream     INTEGER NOT NULL,
    condition TEXT NOT NULL
)
