-- ready_before_start: return the first ready jobs before a scan start, by priority, then by age.
-- They are its early jobs, and those of transactions that its snapshot does not include.
CREATE OR REPLACE FUNCTION workron.ready_before_start(_start workron.scan_start, _limit integer)
RETURNS TABLE (rank integer, job bigint)
LANGUAGE sql STABLE
AS $$
    WITH late AS MATERIALIZED (
        SELECT id AS low, id AS high FROM pg_snapshot_xip(_start.snapshot) AS id
        -- Another transaction that is still open has no visible rows, but maybe many index entries.
        WHERE pg_visible_in_snapshot(id, pg_current_snapshot())
        UNION ALL
        SELECT pg_snapshot_xmax(_start.snapshot), '18446744073709551615'
    )
    SELECT before.rank, before.job FROM (
        SELECT -priority AS rank, job FROM workron.ready WHERE job = ANY (_start.early) AND NOT alone
            AND pg_visible_in_snapshot(inserted_by, _start.snapshot) IS NOT FALSE -- the others follow
        UNION ALL
        SELECT -r.priority, r.job FROM late CROSS JOIN LATERAL (
            SELECT * FROM workron.ready
            WHERE pool = _start.pool AND inserted_by BETWEEN late.low AND late.high
            OFFSET 0 -- It keeps the condition on the position from choosing another index.
        ) r WHERE NOT r.alone
        UNION ALL
        -- The jobs of a large run and a pool follow each other, at the priority of the submission.
        SELECT -r.priority, r.job FROM late
        CROSS JOIN LATERAL (
            SELECT s.id, s.last, -j.priority AS rank FROM workron.run s JOIN workron.job j ON j.id = s.id
            WHERE s.inserted_by BETWEEN late.low AND late.high OFFSET 0
        ) large
        CROSS JOIN LATERAL (
            SELECT priority, job FROM workron.ready
            WHERE pool = _start.pool AND NOT alone AND inserted_by IS NULL
              AND (-priority, job) >= (large.rank, large.id) AND (-priority, job) <= (large.rank, large.last)
            ORDER BY -priority, job LIMIT _limit
        ) r
        OFFSET 0
    ) before
    WHERE (before.rank, before.job) < (_start.rank, _start.job)
    ORDER BY 1, 2 LIMIT _limit
$$;
