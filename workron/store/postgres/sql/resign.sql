-- resign: give the maintainer's lease up at once.
DELETE FROM workron.leader WHERE holder = $1;
