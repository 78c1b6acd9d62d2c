-- list_owned: list unfinished runs made from cluster objects, in order of id. A run ends last of
-- all its jobs. So this goes from an unfinished job to its run and continues after the last job of
-- that run.
WITH RECURSIVE walk (run, last) AS (
    SELECT 0, :after
    UNION ALL
    SELECT run.id, run.last
    FROM walk CROSS JOIN run ON run.id = (
        SELECT max(before.id) FROM run AS before WHERE before.id <= (
            SELECT min(job) FROM (
                SELECT min(job) AS job FROM waiting WHERE job > walk.last
                UNION ALL SELECT min(job) FROM ready WHERE job > walk.last
                UNION ALL SELECT min(job) FROM deferred WHERE job > walk.last
                UNION ALL SELECT min(job) FROM running WHERE job > walk.last)))
    WHERE run.last > walk.last
)
SELECT run.id AS run, run.uid, run.kind, run.namespace, run.name, run.generation,
       run.submitted_at, 0 AS has_ended
FROM walk CROSS JOIN run ON run.id = walk.run
WHERE run.id > :after AND run.generation IS NOT NULL
LIMIT :limit
