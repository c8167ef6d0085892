-- +goose Up
-- Runs that a model fails, or has failed at their end: they wait for who asked.
CREATE INDEX runs_failing ON runs (requester, started) WHERE trouble <> '';

-- +goose Down
DROP INDEX runs_failing;
