-- member: the id of one job of a root by its name, an array's element by its index as well.

-- name: member
-- No row: there is none. An array and its elements have one name; only the array has no index.
SELECT job.id AS job FROM root CROSS JOIN job ON job.id > root.id AND job.id <= root.last
WHERE root.id = :root AND job.name = :name AND job."index" IS :index
LIMIT 1
