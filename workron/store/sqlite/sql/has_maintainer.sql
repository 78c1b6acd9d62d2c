-- has_maintainer: return whether a maintainer is elected and its lease is valid.
SELECT EXISTS (SELECT 1 FROM leader WHERE expires > :now) AS is_elected
