-- migrate: the record of which numbered files made this schema, and the database's identity.

-- name: create_migration_table
-- The first thing in a new file.
CREATE TABLE IF NOT EXISTS migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    compatible INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
)

-- name: applied_migrations
-- What `migration.pending` decides by.
SELECT number, name, checksum, compatible FROM migration ORDER BY number

-- name: insert_migration
-- In the transaction of the file itself.
INSERT INTO migration (number, name, checksum, compatible, applied_at)
VALUES (:number, :name, :checksum, :compatible, :now)

-- name: insert_identity
-- A worker that sees another identity knows that this is another history.
INSERT INTO meta (key, value) VALUES ('database', :identity) ON CONFLICT DO NOTHING

-- name: count_tables
-- Whether a file without our application id has anything in it.
SELECT count(*) AS tables FROM sqlite_master
