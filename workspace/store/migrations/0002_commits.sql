-- +goose Up
-- How far this database is, in one row: its name, which a restore and an accepted loss change, how many commits there
-- were that made neither an input nor an outbound, and the newest of these at that time. A row of the others is proof
-- of its commit by itself (tally.go).
CREATE TABLE commits (id INTEGER PRIMARY KEY, line TEXT NOT NULL, n INTEGER NOT NULL, seq INTEGER NOT NULL, answer INTEGER NOT NULL);
INSERT INTO commits (id, line, n, seq, answer) VALUES (1, '', 0, 0, 0);

-- +goose Down
DROP TABLE commits;
