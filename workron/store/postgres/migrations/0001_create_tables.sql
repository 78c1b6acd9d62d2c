-- compatible: yes
-- A job is in exactly one of the tables waiting, ready, deferred, running and done. Moving it deletes
-- its row in one table and inserts it in another, with the columns that change; `job` has the rest and
-- is written once. JSON from users is stored as text: jsonb would rewrite numbers, 1e22 as 23 digits.

CREATE TABLE pool (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace     text NOT NULL,
    name          text NOT NULL,
    -- The database role that may register in it; null: any role that can execute the functions.
    role          text,
    lease_seconds double precision NOT NULL DEFAULT 60 CHECK (lease_seconds > 0),
    UNIQUE (namespace, name)
);

-- A token registers a worker in a pool. Several can be valid: a new token does not revoke older ones.
CREATE TABLE token (
    hash    bytea PRIMARY KEY,
    pool    integer NOT NULL,
    expires timestamptz NOT NULL,
    -- Whether `grant_pool` added it, so that `revoke_pool` deletes it.
    granted boolean NOT NULL DEFAULT false
);

-- Constraints on values are domains: a statement plans the checks of a table every time, and those of
-- a type once per session.
CREATE DOMAIN end_state AS text CONSTRAINT "state is an end state"
    CHECK (VALUE IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped'));
CREATE DOMAIN failure_reason AS text CONSTRAINT "reason is a failure reason" CHECK (VALUE IN (
    'ExitCode', 'Signal', 'Timeout', 'DeadlineExceeded', 'WorkerLost', 'CommandNotFound',
    'OutOfMemory', 'InputsTooLarge', 'ResultRefused', 'MemberFailed'));
CREATE DOMAIN skip_reason AS text CONSTRAINT "reason is a skip reason"
    CHECK (VALUE IN ('UpstreamFailed', 'UpstreamCancelled', 'NotNeeded'));
CREATE DOMAIN outcome AS text CONSTRAINT "outcome is an attempt outcome"
    CHECK (VALUE IN ('Succeeded', 'Failed', 'Retried', 'Released', 'Lost', 'Cancelled'));
CREATE DOMAIN signal AS text CONSTRAINT "signal is Cancel, Expire or Suspend"
    CHECK (VALUE IN ('Cancel', 'Expire', 'Suspend'));

-- A submitted Job or Workflow object. Its jobs have the ids id..last; the first one is the run itself.
CREATE TABLE run (
    id           bigint PRIMARY KEY,
    last         bigint NOT NULL CHECK (last >= id),
    uid          uuid NOT NULL UNIQUE,
    namespace    text NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('Job', 'Workflow')),
    name         text NOT NULL,
    digest       text NOT NULL,
    submitted_at timestamptz NOT NULL,
    metadata     jsonb NOT NULL,
    cancelled    boolean NOT NULL DEFAULT false,
    suspended    boolean NOT NULL DEFAULT false,
    priority     integer NOT NULL DEFAULT 0,
    -- Its jobs from this id on are those of `finally`; null: it has none.
    finally_from bigint,
    -- Whether the first failure cancels the jobs that have not ended.
    fail_fast    boolean NOT NULL DEFAULT false,
    -- Whether it was cancelled by a request, and not by its deadline or `failFast`.
    cancel_requested boolean NOT NULL DEFAULT false,
    -- Whether its cancellation includes the jobs of `finally`.
    forced       boolean NOT NULL DEFAULT false,
    -- Whether its deadline passed before its tasks had ended; it is cancelled, too, and fails.
    expired      boolean NOT NULL DEFAULT false,
    -- The newest generation seen of its cluster object; null: it was not made from one.
    generation   bigint,
    -- For a large run: the transaction that submitted it, instead of that of each of its jobs.
    inserted_by  xid8
);
CREATE INDEX run_listed ON run (namespace, id);
CREATE INDEX run_inserted_by ON run (inserted_by) WHERE inserted_by IS NOT NULL;

-- The newest run of a name; null while another run only depends on the name. A submission locks it.
CREATE TABLE name (
    namespace text NOT NULL,
    kind      text NOT NULL,
    name      text NOT NULL,
    run       bigint,
    PRIMARY KEY (namespace, kind, name)
);

CREATE TABLE spec (
    id   bigint PRIMARY KEY,
    body text NOT NULL
);

CREATE TABLE job (
    id              bigint PRIMARY KEY,
    run             bigint NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('Job', 'Array', 'Workflow', 'Tasks')),
    spec            bigint NOT NULL,
    name            text NOT NULL,
    index           integer,
    item            text,
    group_id        bigint,
    group_condition text CHECK (group_condition IN ('Member', 'Task', 'AllowedTask')),
    pool            integer NOT NULL,
    priority        integer NOT NULL,
    feeds_inputs    boolean NOT NULL,
    max_losses      integer NOT NULL,
    start_after     timestamptz,
    needs_proof     boolean NOT NULL,
    -- Of an array: how many of its elements may fail.
    max_failures    integer,
    CHECK ((group_id IS NULL) = (group_condition IS NULL))
);
-- The elements of an array, to collect their results by index.
CREATE INDEX job_element ON job (group_id, index) WHERE group_condition = 'Member';
-- Groups are few; counts of a run's jobs subtract them.
CREATE INDEX job_group ON job (id) WHERE kind <> 'Job';

CREATE TABLE edge (
    upstream   bigint NOT NULL,
    downstream bigint NOT NULL,
    condition  text NOT NULL CHECK (condition IN ('Succeeded', 'Failed', 'Finished')),
    PRIMARY KEY (upstream, downstream)
);
CREATE INDEX edge_downstream ON edge (downstream);

-- Upstreams by name that were not submitted yet.
CREATE TABLE external_dependency (
    downstream bigint NOT NULL,
    namespace  text NOT NULL,
    kind       text NOT NULL,
    name       text NOT NULL,
    condition  text NOT NULL CHECK (condition IN ('Succeeded', 'Failed', 'Finished')),
    PRIMARY KEY (namespace, kind, name, downstream)
);
CREATE INDEX external_dependency_downstream ON external_dependency (downstream);

-- A change of a whole run, made in bounded steps. The maintainer continues an interrupted one.
CREATE TABLE bulk_update (
    run       bigint PRIMARY KEY,
    operation text CHECK (operation IN ('cancel', 'suspend', 'resume')),
    -- The new priority of all its jobs.
    priority  integer,
    CHECK (operation IS NOT NULL OR priority IS NOT NULL)
);

-- Runs with `failFast` in which a task has failed; a run can be here more than once. The maintainer
-- cancels them: the transaction that ends a job locks rows that a cancellation locks, too.
CREATE TABLE failed_run (run bigint NOT NULL);

-- One row. A submission that both has and is an external dependency locks it: only such submissions
-- can close a cycle, and two at once could close half a cycle each.
CREATE TABLE submit_lock (single boolean PRIMARY KEY CHECK (single));
INSERT INTO submit_lock VALUES (true);

-- `remaining` counts the upstreams and members to end, one more while suspended and one more while
-- awaiting proof of a worker's death. No index has it and pages keep free space (fillfactor), so that
-- counting down is a HOT update. A `wide` row has so many upstreams that their ends use `pending_end`.
CREATE TABLE waiting (
    job          bigint PRIMARY KEY,
    remaining    integer NOT NULL CHECK (remaining >= 0),
    verdict      smallint NOT NULL DEFAULT 0,
    suspended    boolean NOT NULL DEFAULT false,
    awaits_proof boolean NOT NULL DEFAULT false,
    wide         boolean NOT NULL,
    priority     integer NOT NULL,
    attempts     integer NOT NULL DEFAULT 0,
    failures     integer NOT NULL DEFAULT 0,
    losses       integer NOT NULL DEFAULT 0,
    fence        bigint NOT NULL DEFAULT 0,
    alone        boolean NOT NULL DEFAULT false
) WITH (fillfactor = 60);

CREATE TABLE ready (
    job      bigint PRIMARY KEY,
    pool     integer NOT NULL,
    priority integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    losses   integer NOT NULL DEFAULT 0,
    fence    bigint NOT NULL DEFAULT 0,
    alone    boolean NOT NULL DEFAULT false,
    -- The transaction that put it at its position, to find those that a scan start does not cover;
    -- null: the one that submitted its run.
    inserted_by xid8 DEFAULT pg_current_xact_id()
);
-- The order of claims. Jobs that must run alone have an index of their own and do not slow it down.
CREATE INDEX ready_claim_order ON ready (pool, (-priority), job) WHERE NOT alone;
CREATE INDEX ready_alone ON ready (pool, priority DESC, job) WHERE alone;
CREATE INDEX ready_inserted_by ON ready (pool, inserted_by) WHERE inserted_by IS NOT NULL;

-- Where claims begin to read `ready_claim_order`; the newest row of a pool counts, so that older row
-- versions are not read. Unlogged: after a crash claims read from the beginning.
CREATE UNLOGGED TABLE scan_start (
    id           bigint GENERATED ALWAYS AS IDENTITY,
    pool         integer NOT NULL,
    -- The negated priority.
    rank         integer NOT NULL,
    job          bigint NOT NULL,
    -- Ready jobs before this position, in order.
    early        bigint[] NOT NULL,
    snapshot     pg_snapshot NOT NULL,
    refreshed_at timestamptz NOT NULL,
    PRIMARY KEY (pool, id)
);

CREATE TABLE deferred (
    job      bigint PRIMARY KEY,
    due      timestamptz NOT NULL,
    reason   text NOT NULL CHECK (reason IN ('Backoff', 'Scheduled')),
    pool     integer NOT NULL,
    priority integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    losses   integer NOT NULL DEFAULT 0,
    fence    bigint NOT NULL DEFAULT 0,
    alone    boolean NOT NULL DEFAULT false
);
CREATE INDEX deferred_due ON deferred (due);

CREATE TABLE running (
    job        bigint PRIMARY KEY,
    worker     bigint NOT NULL,
    -- The heartbeat counter of its worker at the time of the claim.
    heartbeat  bigint NOT NULL,
    claim      uuid NOT NULL UNIQUE,
    pool       integer NOT NULL,
    priority   integer NOT NULL,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    losses     integer NOT NULL,
    fence      bigint NOT NULL,
    alone      boolean NOT NULL,
    signal     signal,
    claimed_at timestamptz NOT NULL
);
-- By heartbeat, so that a worker does not read index entries of all claims that it ever held.
CREATE INDEX running_worker ON running (worker, heartbeat);
CREATE INDEX running_alone ON running (worker) WHERE alone;

CREATE TABLE deadline (
    job bigint PRIMARY KEY,
    due timestamptz NOT NULL
);
CREATE INDEX deadline_due ON deadline (due);

-- Ends that were not subtracted from a wide row of `waiting` yet: inserted without a lock on that row,
-- and applied together by the next transaction that can lock it.
CREATE TABLE pending_end (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job     bigint NOT NULL,
    count   integer NOT NULL,
    verdict smallint NOT NULL
);
CREATE INDEX pending_end_job ON pending_end (job);

-- Ended jobs whose ends were not propagated to their downstreams yet.
CREATE TABLE unpropagated (job bigint PRIMARY KEY);

CREATE TABLE done (
    job         bigint PRIMARY KEY,
    state       end_state NOT NULL,
    reason      text,
    message     text,
    exit_code   integer,
    finished_at timestamptz NOT NULL,
    attempts    integer NOT NULL,
    failures    integer NOT NULL,
    losses      integer NOT NULL,
    worker      text,
    CONSTRAINT "reason matches state" CHECK (CASE state
        WHEN 'Failed' THEN reason::failure_reason IS NOT NULL
        WHEN 'Skipped' THEN reason::skip_reason IS NOT NULL
        ELSE reason IS NULL END)
);

CREATE TABLE attempt (
    job         bigint NOT NULL,
    attempt     integer NOT NULL,
    claim       uuid NOT NULL,
    outcome     outcome NOT NULL,
    reason      failure_reason,
    exit_code   integer,
    worker      text,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    PRIMARY KEY (job, attempt)
);
-- A release names claims only, and a repetition must find those that it released before.
CREATE INDEX attempt_released ON attempt (claim) WHERE outcome = 'Released';

CREATE TABLE result (
    job  bigint PRIMARY KEY,
    body text NOT NULL
);

-- Chunk -1 came with the end of the attempt; chunks 0 and up were streamed.
CREATE TABLE output (
    job     bigint NOT NULL,
    attempt integer NOT NULL,
    chunk   integer NOT NULL CHECK (chunk >= -1),
    data    bytea NOT NULL,
    PRIMARY KEY (job, attempt, chunk)
);

-- One row per process. A heartbeat increments `heartbeats` in place and changes no index.
CREATE TABLE worker (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session       uuid NOT NULL UNIQUE,
    pool          integer NOT NULL,
    name          text NOT NULL,
    boot          uuid NOT NULL,
    slots         integer NOT NULL,
    heartbeats    bigint NOT NULL DEFAULT 0,
    -- All claims that it holds were made at this heartbeat or later.
    claims_since  bigint NOT NULL DEFAULT 0,
    draining      boolean NOT NULL DEFAULT false,
    -- As of its registration; a later change of the pool does not affect it.
    lease_seconds double precision NOT NULL,
    registered_at timestamptz NOT NULL,
    UNIQUE (pool, name, boot)
) WITH (fillfactor = 50);

-- Waiting jobs with `overlap: Forbid`, and the lost worker whose death must be proven first.
CREATE TABLE awaiting_proof (
    job    bigint PRIMARY KEY,
    worker bigint NOT NULL,
    pool   integer NOT NULL,
    name   text NOT NULL
);

-- The lease of the elected maintainer.
CREATE TABLE leader (
    single  boolean PRIMARY KEY CHECK (single),
    holder  uuid NOT NULL,
    expires timestamptz NOT NULL
);

CREATE TABLE meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);
INSERT INTO meta VALUES ('database', gen_random_uuid()::text);

-- Where a job is, whichever table it is in. Queries select it by job id or by a range of ids.
CREATE VIEW job_location AS
SELECT job, 'Waiting'::text AS state,
       CASE WHEN suspended THEN 'Suspended' WHEN awaits_proof THEN 'AwaitingProof'
            ELSE 'Upstream' END AS reason,
       NULL::text AS message, priority, attempts, failures, losses, NULL::integer AS exit_code,
       NULL::text AS worker, NULL::timestamptz AS due, NULL::timestamptz AS started_at,
       NULL::timestamptz AS finished_at
FROM waiting
UNION ALL
SELECT job, 'Queued', NULL, NULL, priority, attempts, failures, losses, NULL, NULL, NULL, NULL, NULL
FROM ready
UNION ALL
SELECT job, 'Waiting', reason, NULL, priority, attempts, failures, losses, NULL, NULL, due, NULL, NULL
FROM deferred
UNION ALL
SELECT job, 'Running', NULL, NULL, priority, attempt, failures, losses, NULL,
       (SELECT name FROM worker WHERE worker.id = running.worker), NULL, claimed_at, NULL
FROM running
UNION ALL
SELECT job, state::text, reason, message, NULL, attempts, failures, losses, exit_code, worker, NULL,
       NULL, finished_at
FROM done;
