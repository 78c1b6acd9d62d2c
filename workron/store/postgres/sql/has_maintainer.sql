-- has_maintainer: return whether a maintainer is elected and its lease is valid.
SELECT EXISTS (SELECT FROM workron.leader WHERE expires > workron.now()) AS is_elected;
