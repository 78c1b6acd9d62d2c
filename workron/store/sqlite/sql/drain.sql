-- drain: let a worker finish what it runs and claim no more.
UPDATE worker SET draining = 1 WHERE id = :worker
