-- resign: give up the maintainer's lease.
DELETE FROM leader WHERE holder = :holder
