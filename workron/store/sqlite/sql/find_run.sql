-- find_run: find the newest run of a name. Older runs of the same name are found by id only.
SELECT run.*, run.id AS run, run.last AS last_job, run.cancel_requested AS is_cancelled
FROM name JOIN run ON run.id = name.run
WHERE name.namespace = :namespace AND name.kind = :kind AND name.name = :name
