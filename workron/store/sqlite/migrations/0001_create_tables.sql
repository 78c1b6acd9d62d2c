-- compatible: yes
-- A job is in exactly one of the tables waiting, ready, deferred, running and done. Moving it deletes
-- its row in one table and inserts it in another, with the columns that change; `job` has the rest and
-- is written once. Times are integers: microseconds since 1970 in UTC. Booleans are 0 and 1. Checks on
-- `job` and `edge`, which are inserted row by row, avoid IN: SQLite builds a tree of its list for each
-- row, which doubles the time.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE pool (
    id            INTEGER PRIMARY KEY,
    namespace     TEXT NOT NULL,
    name          TEXT NOT NULL,
    lease_seconds REAL NOT NULL DEFAULT 60 CHECK (lease_seconds > 0),
    UNIQUE (namespace, name)
);

-- A token registers a worker in a pool; only its hash is stored.
CREATE TABLE token (
    hash    TEXT PRIMARY KEY,
    pool    INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    -- Whether `grant_pool` added it, so that `revoke_pool` deletes it.
    granted INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- A submitted Job or Workflow object. Its jobs have the ids id..last; the first one is the run itself.
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
    suspended    INTEGER NOT NULL DEFAULT 0,
    priority     INTEGER NOT NULL DEFAULT 0,
    -- Its jobs from this id on are those of `finally`; null: it has none.
    finally_from INTEGER,
    -- Whether the first failure cancels the jobs that have not ended.
    fail_fast    INTEGER NOT NULL DEFAULT 0,
    -- Whether it was cancelled by a request, and not by its deadline or `failFast`.
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    -- Whether its cancellation includes the jobs of `finally`.
    forced       INTEGER NOT NULL DEFAULT 0,
    -- Whether its deadline passed before its tasks had ended; it is cancelled, too, and fails.
    expired      INTEGER NOT NULL DEFAULT 0,
    -- The newest generation seen of its cluster object; null: it was not made from one.
    generation   INTEGER
);

-- The newest run of a name.
CREATE TABLE name (
    namespace TEXT NOT NULL,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    run       INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, name)
) WITHOUT ROWID;

CREATE TABLE spec (
    id   INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE job (
    id              INTEGER PRIMARY KEY,
    run             INTEGER NOT NULL,
    kind            TEXT NOT NULL CHECK (kind = 'Job' OR kind = 'Array' OR kind = 'Workflow' OR kind = 'Tasks'),
    spec            INTEGER NOT NULL,
    name            TEXT NOT NULL,
    "index"         INTEGER,
    item            TEXT,
    group_id        INTEGER,
    group_condition TEXT
        CHECK (group_condition = 'Member' OR group_condition = 'Task' OR group_condition = 'AllowedTask'),
    pool            INTEGER NOT NULL,
    priority        INTEGER NOT NULL,
    feeds_inputs    INTEGER NOT NULL,
    max_losses      INTEGER NOT NULL,
    start_after     INTEGER,
    needs_proof     INTEGER NOT NULL,
    -- Of an array: how many of its elements may fail.
    max_failures    INTEGER,
    CHECK ((group_id IS NULL) = (group_condition IS NULL))
);
-- The elements of an array, to collect their results by index.
CREATE INDEX job_element ON job (group_id, "index") WHERE group_condition = 'Member';
-- Groups are few; counts of a run's jobs subtract them.
CREATE INDEX job_group ON job (id) WHERE kind <> 'Job';

CREATE TABLE edge (
    upstream   INTEGER NOT NULL,
    downstream INTEGER NOT NULL,
    condition  TEXT NOT NULL
        CHECK (condition = 'Succeeded' OR condition = 'Failed' OR condition = 'Finished'),
    PRIMARY KEY (upstream, downstream)
) WITHOUT ROWID;
CREATE INDEX edge_downstream ON edge (downstream);

-- Upstreams by name that were not submitted yet.
CREATE TABLE external_dependency (
    downstream INTEGER NOT NULL,
    namespace  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    condition  TEXT NOT NULL CHECK (condition IN ('Succeeded', 'Failed', 'Finished')),
    PRIMARY KEY (downstream, namespace, kind, name)
) WITHOUT ROWID;
CREATE INDEX external_dependency_name ON external_dependency (namespace, kind, name);

-- A change of a whole run, made in bounded steps. The maintainer continues an interrupted one.
CREATE TABLE bulk_update (
    run       INTEGER PRIMARY KEY,
    operation TEXT CHECK (operation IN ('cancel', 'suspend', 'resume')),
    -- The new priority of all its jobs.
    priority  INTEGER,
    CHECK (operation IS NOT NULL OR priority IS NOT NULL)
);

-- `remaining` counts the upstreams and members to end, one more while suspended and one more while
-- awaiting proof of a worker's death. With a single writer every end is applied at once.
CREATE TABLE waiting (
    job          INTEGER PRIMARY KEY,
    remaining    INTEGER NOT NULL CHECK (remaining >= 0),
    verdict      INTEGER NOT NULL DEFAULT 0,
    suspended    INTEGER NOT NULL DEFAULT 0,
    awaits_proof INTEGER NOT NULL DEFAULT 0,
    priority     INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,
    failures     INTEGER NOT NULL DEFAULT 0,
    losses       INTEGER NOT NULL DEFAULT 0,
    fence        INTEGER NOT NULL DEFAULT 0,
    alone        INTEGER NOT NULL DEFAULT 0
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
-- The order of claims.
CREATE INDEX ready_claim_order ON ready (pool, alone, priority DESC, job);

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
    signal     TEXT CHECK (signal IN ('Cancel', 'Expire', 'Suspend')),
    claimed_at INTEGER NOT NULL
);
CREATE INDEX running_worker ON running (worker);

CREATE TABLE deadline (
    job INTEGER PRIMARY KEY,
    due INTEGER NOT NULL
);
CREATE INDEX deadline_due ON deadline (due);

-- Ended jobs whose ends were not propagated to their downstreams yet.
CREATE TABLE unpropagated (
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
-- A release names claims only, and a repetition must find those that it released before.
CREATE INDEX attempt_released ON attempt (claim) WHERE outcome = 'Released';

CREATE TABLE result (
    job  INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

-- Chunk -1 came with the end of the attempt; chunks 0 and up were streamed.
CREATE TABLE output (
    job     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    chunk   INTEGER NOT NULL CHECK (chunk >= -1),
    data    BLOB NOT NULL,
    PRIMARY KEY (job, attempt, chunk)
);

-- One row per process. Ids are never reused: `awaiting_proof` keeps them after the row is deleted.
CREATE TABLE worker (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    session       TEXT NOT NULL UNIQUE,
    pool          INTEGER NOT NULL,
    name          TEXT NOT NULL,
    boot          TEXT NOT NULL,
    slots         INTEGER NOT NULL,
    heartbeats    INTEGER NOT NULL DEFAULT 0,
    draining      INTEGER NOT NULL DEFAULT 0,
    -- As of its registration; a later change of the pool does not affect it.
    lease_seconds REAL NOT NULL,
    registered_at INTEGER NOT NULL,
    seen_at       INTEGER NOT NULL,
    UNIQUE (pool, name, boot)
);

-- Waiting jobs with `overlap: Forbid`, and the lost worker whose death must be proven first.
CREATE TABLE awaiting_proof (
    job    INTEGER PRIMARY KEY,
    worker INTEGER NOT NULL,
    pool   INTEGER NOT NULL,
    name   TEXT
);

-- The lease of the elected maintainer.
CREATE TABLE leader (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    holder  TEXT NOT NULL,
    expires INTEGER NOT NULL
);

-- The id of a group's last member; its members have the ids from its own to this.
CREATE VIEW group_range AS
SELECT job.id AS job,
       CASE job.kind
           WHEN 'Array' THEN (
               SELECT element.id FROM job AS element
               WHERE element.group_id = job.id AND element.group_condition = 'Member'
               ORDER BY element."index" DESC LIMIT 1)
           WHEN 'Tasks' THEN (SELECT run.finally_from - 1 FROM run WHERE run.id = job.run)
           ELSE (SELECT run.last FROM run WHERE run.id = job.id) END AS last
FROM job WHERE job.kind <> 'Job';

-- Where a job is, whichever table it is in. A group is Running from the start of its first member to
-- the end of its last.
CREATE VIEW job_location AS
SELECT job.id AS job,
       CASE WHEN done.job IS NOT NULL THEN done.state
            WHEN running.job IS NOT NULL THEN 'Running'
            WHEN ready.job IS NOT NULL THEN 'Queued'
            WHEN job.kind <> 'Job' AND EXISTS (
                SELECT 1 FROM group_range
                WHERE group_range.job = job.id
                  AND (EXISTS (SELECT 1 FROM done
                               WHERE done.job > group_range.job AND done.job <= group_range.last)
                       OR EXISTS (SELECT 1 FROM running
                                  WHERE running.job > group_range.job AND running.job <= group_range.last))
            ) THEN 'Running'
            ELSE 'Waiting' END AS state,
       CASE WHEN done.job IS NOT NULL THEN done.reason
            WHEN deferred.job IS NOT NULL THEN deferred.reason
            WHEN waiting.suspended THEN 'Suspended'
            WHEN waiting.awaits_proof THEN 'AwaitingProof'
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

-- A job as `list_jobs` and `get_jobs` return it. It has started with its first attempt, a group with
-- its first member. Subqueries by key, because some versions of SQLite plan a join with aggregated
-- start times as one scan per job.
CREATE VIEW job_view AS
SELECT job.id AS job, job.run, job.kind, job.name, job."index", job.group_id, job_location.state,
       CASE WHEN job_location.state NOT IN ('Queued', 'Running') THEN job_location.reason END AS reason,
       job_location.message, job_location.priority, pool.name AS pool, job_location.attempts, job_location.failures,
       job_location.losses, job_location.exit_code, job_location.worker, job_location.due,
       CASE job.kind
           WHEN 'Job' THEN coalesce(
               (SELECT started_at FROM attempt WHERE attempt.job = job.id ORDER BY attempt LIMIT 1),
               job_location.claimed_at)
           ELSE (
               SELECT min(began) FROM (
                   SELECT attempt.started_at AS began FROM group_range
                   CROSS JOIN attempt ON attempt.job > group_range.job AND attempt.job <= group_range.last
                   WHERE group_range.job = job.id
                   UNION ALL
                   SELECT running.claimed_at FROM group_range
                   CROSS JOIN running ON running.job > group_range.job AND running.job <= group_range.last
                   WHERE group_range.job = job.id))
       END AS started_at,
       job_location.finished_at
FROM job
CROSS JOIN job_location ON job_location.job = job.id
CROSS JOIN pool ON pool.id = job.pool;
