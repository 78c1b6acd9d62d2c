-- list_run_summaries: list runs with their own state and progress, newest first; a null namespace
-- means all. Ends are counted with groups, which are then subtracted.
WITH listed AS (
    SELECT run.*, run.last - run.id + 1 - (
               SELECT count(*) FROM job INDEXED BY job_group
               WHERE job.kind <> 'Job' AND job.id BETWEEN run.id AND run.last) AS commands
    FROM run WHERE :namespace IS NULL OR run.namespace = :namespace
)
SELECT listed.last AS last_job, listed.uid, listed.namespace, listed.digest, listed.submitted_at,
       listed.metadata, listed.cancel_requested AS is_cancelled, listed.commands, job_view.*,
       CASE WHEN job_view.finished_at IS NOT NULL THEN listed.commands
            ELSE (SELECT count(*) FROM done WHERE done.job BETWEEN listed.id AND listed.last)
                 - (SELECT count(*) FROM job INDEXED BY job_group
                    CROSS JOIN done ON done.job = job.id
                    WHERE job.kind <> 'Job' AND job.id BETWEEN listed.id AND listed.last)
       END AS ended
FROM listed CROSS JOIN job_view ON job_view.job = listed.id
ORDER BY listed.id DESC
