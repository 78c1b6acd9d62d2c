-- jobs: a root and all its members, whichever place each is in, in order of id.

-- name: jobs
-- Each is looked up by its id: nothing is joined that would have to be read whole.
SELECT shown.* FROM root CROSS JOIN shown ON shown.job BETWEEN root.id AND root.last
WHERE root.id = :root
ORDER BY shown.job
