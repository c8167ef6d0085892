-- +goose Up
-- When a run has used its time, since when it waits for people (which moves that), and what its model fails with.
ALTER TABLE runs ADD COLUMN deadline INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN trouble TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE runs DROP COLUMN deadline;
ALTER TABLE runs DROP COLUMN held;
ALTER TABLE runs DROP COLUMN trouble;
