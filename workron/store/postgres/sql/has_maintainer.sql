-- has_maintainer: whether a maintainer's lease runs.
SELECT EXISTS (SELECT FROM workron.leader WHERE expires > workron.now()) AS led;
