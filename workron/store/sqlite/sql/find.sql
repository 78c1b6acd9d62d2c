-- find: the newest root of a name.

-- name: find
-- An older one of the same name is found by its id only.
SELECT root.* FROM name JOIN root ON root.id = name.root
WHERE name.namespace = :namespace AND name.kind = :kind AND name.name = :name
