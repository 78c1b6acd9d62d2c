"""Storage of runs, jobs and workers: protocols (`api`), values (`types`) and two dialects.

`connect` chooses the dialect by URL: PostgreSQL, or SQLite in a file or in memory. What should
happen next is decided in `workron.scheduling` and `workron.core`.
"""
