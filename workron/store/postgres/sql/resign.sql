-- resign: give up the maintainer's lease.
DELETE FROM workron.leader WHERE holder = $1;
