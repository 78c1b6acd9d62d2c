-- ready_before_start: return the first ready jobs before a scan start, by priority, then by age.
-- They are its early jobs, and those of transactions that its snapshot does not include.
CREATE OR REPLACE FUNCTION workron.ready_before_start(_start workron.scan_start, _limit integer)
RETURNS TABLE (rank integer, job bigint)
LANGUAGE sql STABLE
AS $$
    SELECT -r.priority, r.job FROM (
        SELECT * FROM workron.ready
        WHERE job = ANY (_start.early) AND pg_visible_in_snapshot(inserted_by, _start.snapshot)
        UNION ALL
        SELECT late.* FROM unnest(ARRAY(SELECT pg_snapshot_xip(_start.snapshot))) AS open(id)
        CROSS JOIN LATERAL (
            SELECT * FROM workron.ready WHERE pool = _start.pool AND inserted_by = open.id OFFSET 0
        ) late
        -- A transaction that is still open has no visible rows, but maybe many index entries.
        WHERE pg_visible_in_snapshot(open.id, pg_current_snapshot()) OR open.id = pg_current_xact_id_if_assigned()
        UNION ALL
        SELECT * FROM workron.ready
        WHERE pool = _start.pool AND inserted_by >= pg_snapshot_xmax(_start.snapshot)
        OFFSET 0 -- It keeps the conditions below from choosing another index.
    ) r
    WHERE NOT r.alone AND (-r.priority, r.job) < (_start.rank, _start.job)
    ORDER BY 1, 2 LIMIT _limit
$$;
