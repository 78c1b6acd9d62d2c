-- migrate: record the applied migrations and the identity of the database.

-- name: create_migration_table
-- The first table of a new file.
CREATE TABLE IF NOT EXISTS migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    compatible INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
)

-- name: applied_migrations
-- The input of `migrations.pending_migrations`.
SELECT number, name, checksum, compatible FROM migration ORDER BY number

-- name: insert_migration
-- In the transaction of the migration.
INSERT INTO migration (number, name, checksum, compatible, applied_at)
VALUES (:number, :name, :checksum, :compatible, :now)

-- name: insert_identity
-- A worker that sees another identity knows that the database was replaced.
INSERT INTO meta (key, value) VALUES ('database', :identity) ON CONFLICT DO NOTHING

-- name: count_tables
-- Whether a file without our application id is empty.
SELECT count(*) AS tables FROM sqlite_master
