-- The bench's own tables: the columns and indexes over which jobs go from ready to done, as they were
-- when this was written. A later change of the product does not change the limit.

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
CREATE INDEX ready_walk ON ready (pool, priority DESC, job) WHERE NOT alone;
CREATE INDEX ready_alone ON ready (pool, priority DESC, job) WHERE alone;

CREATE TABLE running (
    job        bigint PRIMARY KEY,
    worker     bigint NOT NULL,
    claim      uuid NOT NULL UNIQUE,
    pool       integer NOT NULL,
    priority   integer NOT NULL,
    attempt    integer NOT NULL,
    failures   integer NOT NULL,
    losses     integer NOT NULL,
    fence      bigint NOT NULL,
    alone      boolean NOT NULL,
    mark       text CHECK (mark IN ('Cancel', 'Expire', 'Hold')),
    claimed_at timestamptz NOT NULL
);
CREATE INDEX running_worker ON running (worker);

CREATE TABLE done (
    job         bigint PRIMARY KEY,
    state       text NOT NULL CHECK (state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped')),
    reason      text,
    message     text,
    exit_code   integer,
    finished_at timestamptz NOT NULL,
    attempts    integer NOT NULL,
    failures    integer NOT NULL,
    losses      integer NOT NULL,
    worker      text,
    CHECK ((reason IS NULL) = (state IN ('Succeeded', 'Cancelled')))
);

CREATE TABLE attempt (
    job         bigint NOT NULL,
    attempt     integer NOT NULL,
    claim       uuid NOT NULL,
    outcome     text NOT NULL
        CHECK (outcome IN ('Succeeded', 'Failed', 'Retried', 'Released', 'Lost', 'Cancelled')),
    reason      text,
    exit_code   integer,
    worker      text,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    PRIMARY KEY (job, attempt)
);
CREATE INDEX attempt_released ON attempt (claim) WHERE outcome = 'Released';

-- A claim scans the index `ready_walk`, even if the table was empty when it was analyzed.
DO $$
DECLARE
    _setting text;
BEGIN
    FOREACH _setting IN ARRAY ARRAY[
        'plan_cache_mode = force_generic_plan', 'enable_seqscan = off', 'enable_bitmapscan = off',
        'enable_hashjoin = off', 'enable_mergejoin = off'
    ] LOOP
        EXECUTE format('ALTER DATABASE %I SET %s', current_database(), _setting);
    END LOOP;
END
$$;
