-- find_run: the newest run of a name.

-- name: find_run
-- An older one of the same name is found by its id only.
SELECT run.* FROM name JOIN run ON run.id = name.run
WHERE name.namespace = :namespace AND name.kind = :kind AND name.name = :name
