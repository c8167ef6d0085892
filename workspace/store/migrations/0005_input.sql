-- +goose Up
-- The input that an outbound answers, of which it may go through the reply handle. It stood in the key alone, which nobody
-- takes apart any more; of what is not sent yet it is read from there once more. The column is outside the seal, as the
-- handle is held against its own row: an outbound that lost it goes as an ordinary message.
ALTER TABLE outbound ADD COLUMN input_id TEXT NOT NULL DEFAULT '';
UPDATE outbound SET input_id = SUBSTR(key, 7, 26) WHERE key LIKE 'input:%'
  AND id IN (SELECT outbound_id FROM parts WHERE state NOT IN ('sent', 'cancelled'));

-- +goose Down
ALTER TABLE outbound DROP COLUMN input_id;
