-- read_result: read a job's result.
SELECT body FROM workron.result WHERE job = $1;
