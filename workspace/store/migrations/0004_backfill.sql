-- +goose Up
-- Where the network of a room is asked for what was missed: behind the newest message that says so, whatever the network is
-- called. Of what is there the newest of each room is enough. The column is outside the seal: a message that lost it is
-- fetched again, and known by its key.
ALTER TABLE inputs ADD COLUMN backfill INTEGER NOT NULL DEFAULT 0;
UPDATE inputs SET backfill = 1 WHERE seq IN (SELECT MAX(seq) FROM inputs WHERE source IN ('discord', 'slack') AND kind = 'message' GROUP BY room_id);
DROP INDEX inputs_newest;
CREATE INDEX inputs_newest ON inputs (room_id, seq) WHERE backfill = 1;

-- +goose Down
DROP INDEX inputs_newest;
CREATE INDEX inputs_newest ON inputs (room_id, seq) WHERE source IN ('discord', 'slack') AND kind = 'message';
ALTER TABLE inputs DROP COLUMN backfill;
