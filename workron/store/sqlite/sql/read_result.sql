-- read_result: read a job's result.
SELECT body FROM result WHERE job = :job
