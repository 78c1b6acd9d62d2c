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

CREATE TABLE awaiting_proof (
    job    INTEGER PRIMARY KEY,
    worker INTEGER NOT NULL,
    pool   INTEGER NOT NULL,
    name   TEXT
);

CREATE TABLE bulk_update (
    run       INTEGER PRIMARY KEY,
    operation TEXT CHECK (operation IN ('cancel', 'suspend', 'resume')),
    -- The new priority of all its jobs.
    priority  INTEGER,
    CHECK (operation IS NOT NULL OR priority IS NOT NULL)
);

CREATE TABLE deadline (
    job INTEGER PRIMARY KEY,
    due INTEGER NOT NULL
);

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

CREATE TABLE edge (
    upstream   INTEGER NOT NULL,
    downstream INTEGER NOT NULL,
    condition  TEXT NOT NULL
        CHECK (condition = 'Succeeded' OR condition = 'Failed' OR condition = 'Finished'),
    PRIMARY KEY (upstream, downstream)
) WITHOUT ROWID;

CREATE TABLE external_dependency (
    downstream INTEGER NOT NULL,
    namespace  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    condition  TEXT NOT NULL CHECK (condition IN ('Succeeded', 'Failed', 'Finished')),
    PRIMARY KEY (downstream, namespace, kind, name)
) WITHOUT ROWID;

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

CREATE TABLE leader (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    holder  TEXT NOT NULL,
    expires INTEGER NOT NULL
);

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    compatible INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
);

CREATE TABLE name (
    namespace TEXT NOT NULL,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    run       INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, name)
) WITHOUT ROWID;

CREATE TABLE output (
    job     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    chunk   INTEGER NOT NULL CHECK (chunk >= -1),
    data    BLOB NOT NULL,
    PRIMARY KEY (job, attempt, chunk)
);

CREATE TABLE pool (
    id            INTEGER PRIMARY KEY,
    namespace     TEXT NOT NULL,
    name          TEXT NOT NULL,
    lease_seconds REAL NOT NULL DEFAULT 60 CHECK (lease_seconds > 0),
    UNIQUE (namespace, name)
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

CREATE TABLE result (
    job  INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

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

CREATE TABLE spec (
    id   INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE token (
    hash    TEXT PRIMARY KEY,
    pool    INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    -- Whether `grant_pool` added it, so that `revoke_pool` deletes it.
    granted INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE unpropagated (
    job INTEGER PRIMARY KEY
);

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

CREATE INDEX attempt_released ON attempt (claim) WHERE outcome = 'Released';

CREATE INDEX deadline_due ON deadline (due);

CREATE INDEX deferred_due ON deferred (due);

CREATE INDEX edge_downstream ON edge (downstream);

CREATE INDEX external_dependency_name ON external_dependency (namespace, kind, name);

CREATE INDEX job_element ON job (group_id, "index") WHERE group_condition = 'Member';

CREATE INDEX job_group ON job (id) WHERE kind <> 'Job';

CREATE INDEX ready_claim_order ON ready (pool, alone, priority DESC, job);

CREATE INDEX running_worker ON running (worker);

