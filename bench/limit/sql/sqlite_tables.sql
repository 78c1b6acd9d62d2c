-- The bench's own tables: the columns and indexes over which jobs go from ready to done in SQLite, as
-- they were when this was written. A later change of the product does not change the limit.

CREATE TABLE ready (
    job      INTEGER PRIMARY KEY,
    pool     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses   INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    alone    INTEGER NOT NULL
);
CREATE INDEX ready_walk ON ready (pool, alone, priority DESC, job);

CREATE TABLE running (
    job        INTEGER PRIMARY KEY,
    worker     INTEGER NOT NULL,
    claim      TEXT NOT NULL UNIQUE,
    pool       INTEGER NOT NULL,
    priority   INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    failures   INTEGER NOT NULL,
    losses     INTEGER NOT NULL,
    fence      INTEGER NOT NULL,
    alone      INTEGER NOT NULL,
    mark       TEXT CHECK (mark IN ('Cancel', 'Expire', 'Hold')),
    claimed_at INTEGER NOT NULL
);
CREATE INDEX running_worker ON running (worker);

CREATE TABLE done (
    job         INTEGER PRIMARY KEY,
    state       TEXT NOT NULL CHECK (state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped')),
    reason      TEXT,
    message     TEXT,
    exit_code   INTEGER,
    finished_at INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    losses      INTEGER NOT NULL,
    worker      TEXT,
    CHECK ((reason IS NULL) = (state IN ('Succeeded', 'Cancelled')))
);

CREATE TABLE attempt (
    job         INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    claim       TEXT NOT NULL,
    outcome     TEXT NOT NULL
        CHECK (outcome IN ('Succeeded', 'Failed', 'Retried', 'Released', 'Lost', 'Cancelled')),
    reason      TEXT,
    exit_code   INTEGER,
    worker      TEXT,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    PRIMARY KEY (job, attempt)
) WITHOUT ROWID;
CREATE INDEX attempt_released ON attempt (claim) WHERE outcome = 'Released';
