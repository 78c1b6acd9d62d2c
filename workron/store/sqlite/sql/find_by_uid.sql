-- find_by_uid: find the runs that were made from these cluster objects.
SELECT run.id AS run, run.uid, run.kind, run.namespace, run.name, run.generation,
       run.submitted_at, EXISTS (SELECT 1 FROM done WHERE done.job = run.id) AS has_ended
FROM json_each(:uids) CROSS JOIN run ON run.uid = json_each.value
WHERE run.generation IS NOT NULL
