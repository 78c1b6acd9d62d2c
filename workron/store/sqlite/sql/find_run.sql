-- find_run: find the newest run of a name.

-- name: find_run
-- Older runs of the same name are found by id only.
SELECT run.* FROM name JOIN run ON run.id = name.run
WHERE name.namespace = :namespace AND name.kind = :kind AND name.name = :name
