-- read_result: what a job wrote as its result.
SELECT body FROM workron.result WHERE job = $1;
