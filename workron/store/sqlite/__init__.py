"""The store on SQLite, in a file or in memory, over the standard library.

`sql/` has one file per method of the store, with the names of the PostgreSQL store; tables are
created by `migrations/`. One thread owns the connection that writes (`engine`).
"""
