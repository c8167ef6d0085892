-- +goose Up
-- When a grant for a session was taken back. The column is outside the seal, as the grant itself is.
ALTER TABLE approvals ADD COLUMN revoked_at INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE approvals DROP COLUMN revoked_at;
