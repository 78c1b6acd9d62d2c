-- drain: let a worker finish what it runs and claim no more.
UPDATE workron.worker SET draining = true WHERE id = $1 RETURNING true AS is_draining;
