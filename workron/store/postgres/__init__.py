"""The store on PostgreSQL 15 and newer, over asyncpg.

`sql/` has one file per method of the store. Most are functions in the database, which `functions`
installs; tables are created by `migrations/`.
"""
