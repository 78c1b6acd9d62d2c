-- compatible: yes
-- The split tables. A job is in exactly one place: waiting, ready, deferred, running or done; the row
-- that moves carries what changes. Everything else about a job is written once. JSON that people or
-- jobs wrote is kept as its text: jsonb would write their numbers anew, 1e22 as 23 digits.

CREATE TABLE pool (
    id            integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace     text NOT NULL,
    name          text NOT NULL,
    -- The database role that may register in it; null: any role that can execute the verbs.
    role          text,
    lease_seconds double precision NOT NULL DEFAULT 10 CHECK (lease_seconds > 0),
    UNIQUE (namespace, name)
);

-- What a worker registers with. Several may be valid: a new one never locks out who has an older one.
CREATE TABLE token (
    hash    bytea PRIMARY KEY,
    pool    integer NOT NULL,
    expires timestamptz NOT NULL,
    -- Whether the operator gave it, who takes it back when the object of the pool is gone.
    operators boolean NOT NULL DEFAULT false
);

-- What a column may say stands in its type: a check of a table is read and planned anew by every
-- statement that writes to it, and that of a type once in a session.
CREATE DOMAIN end_state AS text
    CONSTRAINT "an end is one of these" CHECK (VALUE IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped'));
CREATE DOMAIN failure AS text CONSTRAINT "the reason is one by which a job can fail" CHECK (VALUE IN (
    'ExitCode', 'Signal', 'Timeout', 'DeadlineExceeded', 'WorkerLost', 'CommandNotFound',
    'OutOfMemory', 'InputsTooLarge', 'ResultRefused', 'MemberFailed'));
CREATE DOMAIN skip AS text CONSTRAINT "the reason is one by which a job is skipped"
    CHECK (VALUE IN ('UpstreamFailed', 'UpstreamCancelled', 'NotNeeded'));
CREATE DOMAIN outcome AS text CONSTRAINT "an attempt ends in one of these"
    CHECK (VALUE IN ('Succeeded', 'Failed', 'Retried', 'Released', 'Lost', 'Cancelled'));
CREATE DOMAIN mark AS text CONSTRAINT "this can be asked of what runs"
    CHECK (VALUE IN ('Cancel', 'Expire', 'Hold'));

-- What was submitted under a name. Its jobs are id..last; the run is itself a job.
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
    held         boolean NOT NULL DEFAULT false,
    priority     integer NOT NULL DEFAULT 0,
    -- The newest edition that was heard of the object it was made from; null: it is of no cluster.
    generation   bigint
);
CREATE INDEX run_listed ON run (namespace, id);

-- The newest run of a name, or null while somebody waits for the name. Locked by both sides.
CREATE TABLE name (
    namespace text NOT NULL,
    kind      text NOT NULL,
    name      text NOT NULL,
    run      bigint,
    PRIMARY KEY (namespace, kind, name)
);

CREATE TABLE spec (
    id   bigint PRIMARY KEY,
    body text NOT NULL
);

CREATE TABLE job (
    id           bigint PRIMARY KEY,
    run         bigint NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('Job', 'Array', 'Workflow')),
    spec         bigint NOT NULL,
    name         text NOT NULL,
    index        integer,
    item         text,
    group_id    bigint,
    group_condition      text CHECK (group_condition IN ('Member', 'Task', 'HandledTask')),
    pool         integer NOT NULL,
    priority     integer NOT NULL,
    feeds_inputs boolean NOT NULL,
    max_losses   integer NOT NULL,
    start_after  timestamptz,
    needs_proof  boolean NOT NULL,
    CHECK ((group_id IS NULL) = (group_condition IS NULL))
);
-- The elements of an array, whose results are gathered by index.
CREATE INDEX job_element ON job (group_id, index) WHERE group_condition = 'Member';
-- The few groups among many jobs, so that counting commands can leave them out.
CREATE INDEX job_group ON job (id) WHERE kind <> 'Job';

CREATE TABLE edge (
    parent    bigint NOT NULL,
    child     bigint NOT NULL,
    condition text NOT NULL CHECK (condition IN ('Succeeded', 'Failed', 'Finished')),
    PRIMARY KEY (parent, child)
);
CREATE INDEX edge_child ON edge (child);

-- Upstreams by name that do not exist yet.
CREATE TABLE unbound (
    child     bigint NOT NULL,
    namespace text NOT NULL,
    kind      text NOT NULL,
    name      text NOT NULL,
    condition text NOT NULL CHECK (condition IN ('Succeeded', 'Failed', 'Finished')),
    PRIMARY KEY (namespace, kind, name, child)
);
CREATE INDEX unbound_child ON unbound (child);

-- A change of a whole run that goes in bounded steps; the maintainer goes on where a caller stopped.
CREATE TABLE sweep (
    run     bigint PRIMARY KEY,
    verb     text CHECK (verb IN ('cancel', 'hold', 'resume')),
    -- What all its jobs are to have.
    priority integer,
    CHECK (verb IS NOT NULL OR priority IS NOT NULL)
);

-- One row, locked by a submit that both awaits others and is awaited: only such can close a cycle.
CREATE TABLE binding (single boolean PRIMARY KEY CHECK (single));
INSERT INTO binding VALUES (true);

-- `remaining` is in no index, and pages keep room, so that a decrement stays in its page.
CREATE TABLE waiting (
    job       bigint PRIMARY KEY,
    remaining integer NOT NULL CHECK (remaining >= 0),
    verdict   smallint NOT NULL DEFAULT 0,
    held      boolean NOT NULL DEFAULT false,
    unproven  boolean NOT NULL DEFAULT false,
    wide      boolean NOT NULL,
    priority  integer NOT NULL,
    attempts  integer NOT NULL DEFAULT 0,
    failures  integer NOT NULL DEFAULT 0,
    losses    integer NOT NULL DEFAULT 0,
    fence     bigint NOT NULL DEFAULT 0,
    alone     boolean NOT NULL DEFAULT false
) WITH (fillfactor = 60);

CREATE TABLE ready (
    job      bigint PRIMARY KEY,
    pool     integer NOT NULL,
    priority integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    losses   integer NOT NULL DEFAULT 0,
    fence    bigint NOT NULL DEFAULT 0,
    alone    boolean NOT NULL DEFAULT false
);
-- The claim's walk. Jobs to be run alone are few and apart, so that they never stand in its way.
CREATE INDEX ready_walk ON ready (pool, priority DESC, job) WHERE NOT alone;
CREATE INDEX ready_alone ON ready (pool, priority DESC, job) WHERE alone;

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
    -- The last beat of its worker that was there before it.
    beat       bigint NOT NULL,
    claim      uuid NOT NULL UNIQUE,
    pool       integer NOT NULL,
    priority   integer NOT NULL,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    losses     integer NOT NULL,
    fence      bigint NOT NULL,
    alone      boolean NOT NULL,
    mark       mark,
    claimed_at timestamptz NOT NULL
);
-- By beats, so that a worker need not look through all that it has ever held.
CREATE INDEX running_worker ON running (worker, beat);
CREATE INDEX running_alone ON running (worker) WHERE alone;

CREATE TABLE deadline (
    job bigint PRIMARY KEY,
    due timestamptz NOT NULL
);
CREATE INDEX deadline_due ON deadline (due);

-- Ends that a wide row has not been told yet: appended without a lock, summed by whoever can.
CREATE TABLE arrival (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job     bigint NOT NULL,
    count   integer NOT NULL,
    verdict smallint NOT NULL
);
CREATE INDEX arrival_job ON arrival (job);

-- Ends whose downstreams have not been told yet.
CREATE TABLE unsettled (job bigint PRIMARY KEY);

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
    CONSTRAINT "an end has its reason" CHECK (CASE state
        WHEN 'Failed' THEN reason::failure IS NOT NULL
        WHEN 'Skipped' THEN reason::skip IS NOT NULL
        ELSE reason IS NULL END)
);

CREATE TABLE attempt (
    job         bigint NOT NULL,
    attempt     integer NOT NULL,
    claim       uuid NOT NULL,
    outcome     outcome NOT NULL,
    -- What an attempt ends by, its job may fail by.
    reason      failure,
    exit_code   integer,
    worker      text,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    PRIMARY KEY (job, attempt)
);
-- A release names claims alone; it has to know those that it released already.
CREATE INDEX attempt_released ON attempt (claim) WHERE outcome = 'Released';

CREATE TABLE result (
    job  bigint PRIMARY KEY,
    body text NOT NULL
);

-- Chunk -1 is what the end of an attempt brought; 0 and up came while it ran.
CREATE TABLE output (
    job     bigint NOT NULL,
    attempt integer NOT NULL,
    chunk   integer NOT NULL CHECK (chunk >= -1),
    data    bytea NOT NULL,
    PRIMARY KEY (job, attempt, chunk)
);

-- One row a process; a beat raises `beats` in place and touches no index.
CREATE TABLE worker (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session       uuid NOT NULL UNIQUE,
    pool          integer NOT NULL,
    name          text NOT NULL,
    boot          uuid NOT NULL,
    slots         integer NOT NULL,
    beats         bigint NOT NULL DEFAULT 0,
    -- No claim that it holds came before this beat.
    since         bigint NOT NULL DEFAULT 0,
    draining      boolean NOT NULL DEFAULT false,
    -- As it was told when it registered, and counts on, whatever its pool says since.
    lease_seconds double precision NOT NULL,
    registered_at timestamptz NOT NULL,
    UNIQUE (pool, name, boot)
) WITH (fillfactor = 50);

-- Workers whose death is not proven while a job of theirs waits for that proof.
CREATE TABLE missing (
    job    bigint PRIMARY KEY,
    worker bigint NOT NULL,
    pool   integer NOT NULL,
    name   text NOT NULL
);

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
