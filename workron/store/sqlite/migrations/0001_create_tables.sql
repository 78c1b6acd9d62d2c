-- compatible: yes
-- The split tables. A job is in exactly one place: waiting, ready, deferred, running or done; the row
-- that moves carries what changes. Everything else about a job is written once. Times are integers:
-- microseconds since 1970 in UTC. Truths are 0 and 1. Checks on `job` and `edge`, which take rows one
-- by one, avoid IN: SQLite builds a tree for its list on every row, and doubles the time.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE pool (
    id            INTEGER PRIMARY KEY,
    namespace     TEXT NOT NULL,
    name          TEXT NOT NULL,
    lease_seconds REAL NOT NULL DEFAULT 10 CHECK (lease_seconds > 0),
    UNIQUE (namespace, name)
);

-- What admits a worker to a pool; the token itself is not kept.
CREATE TABLE token (
    hash    TEXT PRIMARY KEY,
    pool    INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    -- Whether the operator gave it, who takes it back when the object of the pool is gone.
    operators INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What was submitted under a name. Its jobs are id..last; the run is itself a job.
CREATE TABLE run (
    id           INTEGER PRIMARY KEY,
    last         INTEGER NOT NULL CHECK (last >= id),
    uid          TEXT NOT NULL UNIQUE,
    namespace    TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('Job', 'Workflow')),
    name         TEXT NOT NULL,
    digest       TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    metadata     TEXT NOT NULL,
    cancelled    INTEGER NOT NULL DEFAULT 0,
    held         INTEGER NOT NULL DEFAULT 0,
    priority     INTEGER NOT NULL DEFAULT 0,
    -- The newest edition that was heard of the object it was made from; null: it is of no cluster.
    generation   INTEGER
);

-- The newest run of a name.
CREATE TABLE name (
    namespace TEXT NOT NULL,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    run      INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, name)
) WITHOUT ROWID;

CREATE TABLE spec (
    id   INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE job (
    id           INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL,
    kind         TEXT NOT NULL CHECK (kind = 'Job' OR kind = 'Array' OR kind = 'Workflow'),
    spec         INTEGER NOT NULL,
    name         TEXT NOT NULL,
    "index"      INTEGER,
    item         TEXT,
    group_id    INTEGER,
    group_condition      TEXT
        CHECK (group_condition = 'Member' OR group_condition = 'Task' OR group_condition = 'HandledTask'),
    pool         INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    feeds_inputs INTEGER NOT NULL,
    max_losses   INTEGER NOT NULL,
    start_after  INTEGER,
    needs_proof  INTEGER NOT NULL,
    CHECK ((group_id IS NULL) = (group_condition IS NULL))
);
-- The elements of an array, whose results are gathered by index.
CREATE INDEX job_element ON job (group_id, "index") WHERE group_condition = 'Member';
-- The few groups among many jobs, so that counting commands can leave them out.
CREATE INDEX job_group ON job (id) WHERE kind <> 'Job';

CREATE TABLE edge (
    parent    INTEGER NOT NULL,
    child     INTEGER NOT NULL,
    condition TEXT NOT NULL
        CHECK (condition = 'Succeeded' OR condition = 'Failed' OR condition = 'Finished'),
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX edge_child ON edge (child);

-- Upstreams by name that do not exist yet.
CREATE TABLE unbound (
    child     INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    condition TEXT NOT NULL CHECK (condition IN ('Succeeded', 'Failed', 'Finished')),
    PRIMARY KEY (child, namespace, kind, name)
) WITHOUT ROWID;
CREATE INDEX unbound_name ON unbound (namespace, kind, name);

-- A change of a whole run that goes in bounded steps; the maintainer goes on where a caller stopped.
CREATE TABLE sweep (
    run     INTEGER PRIMARY KEY,
    verb     TEXT CHECK (verb IN ('cancel', 'hold', 'resume')),
    -- What all its jobs are to have.
    priority INTEGER,
    CHECK (verb IS NOT NULL OR priority IS NOT NULL)
);

-- `remaining` counts the ends still to come, one for a hold and one for a missing proof of death.
-- A single writer needs no appended arrivals: every end is counted at once, however wide the row.
CREATE TABLE waiting (
    job       INTEGER PRIMARY KEY,
    remaining INTEGER NOT NULL CHECK (remaining >= 0),
    verdict   INTEGER NOT NULL DEFAULT 0,
    held      INTEGER NOT NULL DEFAULT 0,
    unproven  INTEGER NOT NULL DEFAULT 0,
    priority  INTEGER NOT NULL,
    attempts  INTEGER NOT NULL DEFAULT 0,
    failures  INTEGER NOT NULL DEFAULT 0,
    losses    INTEGER NOT NULL DEFAULT 0,
    fence     INTEGER NOT NULL DEFAULT 0,
    alone     INTEGER NOT NULL DEFAULT 0
);

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
-- The claim's walk.
CREATE INDEX ready_walk ON ready (pool, alone, priority DESC, job);

CREATE TABLE deferred (
    job      INTEGER PRIMARY KEY,
    due      INTEGER NOT NULL,
    reason   TEXT NOT NULL CHECK (reason IN ('Backoff', 'Scheduled')),
    pool     INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses   INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    alone    INTEGER NOT NULL
);
CREATE INDEX deferred_due ON deferred (due);

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

CREATE TABLE deadline (
    job INTEGER PRIMARY KEY,
    due INTEGER NOT NULL
);
CREATE INDEX deadline_due ON deadline (due);

-- Ends whose downstreams have not been told yet.
CREATE TABLE unsettled (
    job INTEGER PRIMARY KEY
);

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
-- A release names claims, not jobs; its repetition finds them here.
CREATE INDEX attempt_released ON attempt (claim) WHERE outcome = 'Released';

CREATE TABLE result (
    job  INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

-- Chunk -1 is what the end of an attempt brought; 0 and up came while it ran.
CREATE TABLE output (
    job     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    chunk   INTEGER NOT NULL CHECK (chunk >= -1),
    data    BLOB NOT NULL,
    PRIMARY KEY (job, attempt, chunk)
);

-- One row a process. An id is never used again: it may stand in `missing` long after its row.
CREATE TABLE worker (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    session       TEXT NOT NULL UNIQUE,
    pool          INTEGER NOT NULL,
    name          TEXT NOT NULL,
    boot          TEXT NOT NULL,
    slots         INTEGER NOT NULL,
    beats         INTEGER NOT NULL DEFAULT 0,
    draining      INTEGER NOT NULL DEFAULT 0,
    -- As it was told when it registered, and counts on, whatever its pool says since.
    lease_seconds REAL NOT NULL,
    registered_at INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    UNIQUE (pool, name, boot)
);

-- Workers whose death is not proven while a job of theirs waits for that proof.
CREATE TABLE missing (
    job    INTEGER PRIMARY KEY,
    worker INTEGER NOT NULL,
    pool   INTEGER NOT NULL,
    name   TEXT
);

-- The maintainer's lease: one row at most.
CREATE TABLE leader (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    holder  TEXT NOT NULL,
    expires INTEGER NOT NULL
);

-- The id of a group's last member: its members follow it without a gap.
CREATE VIEW reach AS
SELECT job.id AS job,
       CASE job.kind
           WHEN 'Array' THEN (
               SELECT element.id FROM job AS element
               WHERE element.group_id = job.id AND element.group_condition = 'Member'
               ORDER BY element."index" DESC LIMIT 1)
           ELSE (SELECT run.last FROM run WHERE run.id = job.id) END AS last
FROM job WHERE job.kind <> 'Job';

-- Where each job stands, whichever table it is in; a group runs while some but not all of it has left
-- the places where jobs wait.
CREATE VIEW standing AS
SELECT job.id AS job,
       CASE WHEN done.job IS NOT NULL THEN done.state
            WHEN running.job IS NOT NULL THEN 'Running'
            WHEN ready.job IS NOT NULL THEN 'Queued'
            WHEN job.kind <> 'Job' AND EXISTS (
                SELECT 1 FROM reach
                WHERE reach.job = job.id
                  AND (EXISTS (SELECT 1 FROM done
                               WHERE done.job > reach.job AND done.job <= reach.last)
                       OR EXISTS (SELECT 1 FROM running
                                  WHERE running.job > reach.job AND running.job <= reach.last))
            ) THEN 'Running'
            ELSE 'Waiting' END AS state,
       CASE WHEN done.job IS NOT NULL THEN done.reason
            WHEN deferred.job IS NOT NULL THEN deferred.reason
            WHEN waiting.held THEN 'Suspended'
            WHEN waiting.unproven THEN 'AwaitingProof'
            WHEN waiting.job IS NOT NULL THEN 'Upstream' END AS reason,
       done.message,
       coalesce(waiting.priority, ready.priority, deferred.priority, running.priority, job.priority)
           AS priority,
       coalesce(done.attempts, running.attempt, waiting.attempts, ready.attempts, deferred.attempts)
           AS attempts,
       coalesce(done.failures, running.failures, waiting.failures, ready.failures, deferred.failures)
           AS failures,
       coalesce(done.losses, running.losses, waiting.losses, ready.losses, deferred.losses) AS losses,
       done.exit_code,
       CASE WHEN running.job IS NOT NULL
            THEN (SELECT worker.name FROM worker WHERE worker.id = running.worker)
            ELSE done.worker END AS worker,
       deferred.due,
       running.claimed_at,
       done.finished_at
FROM job
LEFT JOIN done ON done.job = job.id
LEFT JOIN running ON running.job = job.id
LEFT JOIN ready ON ready.job = job.id
LEFT JOIN waiting ON waiting.job = job.id
LEFT JOIN deferred ON deferred.job = job.id;

-- A job as readers are shown it. One that was tried before began with its first attempt, a group with
-- the first of its members. Asked of each by its indexes: a join with a set of beginnings is planned
-- as a scan for every job by some versions of SQLite.
CREATE VIEW shown AS
SELECT job.id AS job, job.run, job.kind, job.name, job."index", job.group_id, standing.state,
       CASE WHEN standing.state NOT IN ('Queued', 'Running') THEN standing.reason END AS reason,
       standing.message, standing.priority, pool.name AS pool, standing.attempts, standing.failures,
       standing.losses, standing.exit_code, standing.worker, standing.due,
       CASE job.kind
           WHEN 'Job' THEN coalesce(
               (SELECT started_at FROM attempt WHERE attempt.job = job.id ORDER BY attempt LIMIT 1),
               standing.claimed_at)
           ELSE (
               SELECT min(began) FROM (
                   SELECT attempt.started_at AS began FROM reach
                   CROSS JOIN attempt ON attempt.job > reach.job AND attempt.job <= reach.last
                   WHERE reach.job = job.id
                   UNION ALL
                   SELECT running.claimed_at FROM reach
                   CROSS JOIN running ON running.job > reach.job AND running.job <= reach.last
                   WHERE reach.job = job.id))
       END AS started_at,
       standing.finished_at
FROM job
CROSS JOIN standing ON standing.job = job.id
CROSS JOIN pool ON pool.id = job.pool;
