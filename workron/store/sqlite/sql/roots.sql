-- roots: what was submitted, newest first.

-- name: roots
-- Without a namespace, of all.
SELECT * FROM root WHERE :namespace IS NULL OR namespace = :namespace ORDER BY id DESC
