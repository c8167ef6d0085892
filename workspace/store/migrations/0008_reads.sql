-- +goose Up
-- How far each person has read each session, of any channel. The row without a session is since when it is kept for the person:
-- what is older counts as read. Outside the seal: a mark that is lost or wrong shows a dot too many, or one too few.
CREATE TABLE reads (
  person_id TEXT NOT NULL, session_key TEXT NOT NULL, gen INTEGER NOT NULL DEFAULT 0, n INTEGER NOT NULL DEFAULT 0, at INTEGER NOT NULL,
  PRIMARY KEY (person_id, session_key)
);

-- +goose Down
DROP TABLE reads;
