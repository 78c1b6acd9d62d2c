-- list_bulk_updates: list some runs whose bulk update is not finished.
SELECT run FROM workron.bulk_update ORDER BY run LIMIT 10;
