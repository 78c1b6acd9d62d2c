-- drain: let a worker end what it has and claim no more.
UPDATE workron.worker SET draining = true WHERE id = $1 RETURNING true AS is_draining;
