-- +goose Up
-- The line. One text for both databases: INTEGER means 64 bits (BIGINT on PostgreSQL), and a table that is
-- clustered by its key says so (WITHOUT ROWID, dropped on PostgreSQL). Times are milliseconds since 1970 UTC,
-- 0 or NULL for none; ids are ULID text and never define an order; "sum" is the crc32c of a row's payload.
-- "seal" is one over the columns that never change, "end_seal" over those that a run's end sets (seal.go).
-- What a message touches is what a commit writes, a page at a time. So indexes leave out rows that nobody looks for
-- (WHERE …), and what is unique by its making has none: an outbound's id is made from its key, outbound.n grows over all
-- rooms, a part's token is its primary key as text.

CREATE TABLE people (
  id TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL DEFAULT '', tz TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL DEFAULT 0, configured INTEGER NOT NULL DEFAULT 0,
  joined TEXT NOT NULL DEFAULT '' -- who this person has become by a link
);
CREATE TABLE accounts (
  network TEXT NOT NULL, account TEXT NOT NULL, "user" TEXT NOT NULL, person_id TEXT NOT NULL, name TEXT NOT NULL DEFAULT '',
  configured INTEGER NOT NULL DEFAULT 0, most TEXT NOT NULL DEFAULT '', -- the greatest role that it speaks with, after a link; '': its person's
  PRIMARY KEY (network, account, "user")
) WITHOUT ROWID;
CREATE TABLE links ( -- the code that a person asked for, and the wrong ones that they gave
  person_id TEXT PRIMARY KEY, network TEXT NOT NULL DEFAULT '', room_id TEXT NOT NULL DEFAULT '', code_hash TEXT NOT NULL DEFAULT '',
  issued INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, tried INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE pairings (
  id TEXT PRIMARY KEY, channel TEXT NOT NULL, network TEXT NOT NULL, account TEXT NOT NULL, "user" TEXT NOT NULL, name TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL, requested INTEGER NOT NULL, code_hash TEXT NOT NULL DEFAULT '', issued INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0,
  decided INTEGER NOT NULL DEFAULT 0, decided_by TEXT NOT NULL DEFAULT '', room_id TEXT NOT NULL DEFAULT ''
);
CREATE INDEX pairings_sender ON pairings (network, account, "user");

CREATE TABLE rooms (
  id TEXT PRIMARY KEY, network TEXT NOT NULL, account TEXT NOT NULL, peer_kind TEXT NOT NULL, peer TEXT NOT NULL, thread TEXT NOT NULL DEFAULT '',
  title TEXT NOT NULL DEFAULT '', session_key TEXT NOT NULL DEFAULT '', activation TEXT NOT NULL DEFAULT '',
  UNIQUE (network, account, peer_kind, peer, thread)
);
CREATE TABLE moves ( -- a peer that the network gave a new id, and the id that its sessions, routes and permissions go by
  network TEXT NOT NULL, account TEXT NOT NULL, peer TEXT NOT NULL, origin TEXT NOT NULL,
  PRIMARY KEY (network, account, peer)
);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, key TEXT NOT NULL, gen INTEGER NOT NULL, agent TEXT NOT NULL, name TEXT NOT NULL DEFAULT '', partition INTEGER NOT NULL,
  created INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0, overrides TEXT NOT NULL DEFAULT '{}', usage TEXT NOT NULL DEFAULT '{}',
  hidden INTEGER NOT NULL DEFAULT 0, compacted INTEGER NOT NULL DEFAULT 0, origin TEXT,
  forked_from TEXT NOT NULL DEFAULT '', forked_before INTEGER NOT NULL DEFAULT 0,
  UNIQUE (key, gen)
);
CREATE INDEX sessions_live ON sessions (id) WHERE ended = 0;
CREATE UNIQUE INDEX sessions_origin ON sessions (origin) WHERE origin IS NOT NULL;
CREATE TABLE inputs (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, account TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL,
  target_key TEXT NOT NULL DEFAULT '', room_id TEXT NOT NULL DEFAULT '', person_id TEXT NOT NULL DEFAULT '', role TEXT NOT NULL DEFAULT '',
  sender TEXT NOT NULL DEFAULT '', session_id TEXT NOT NULL DEFAULT '', agent TEXT NOT NULL DEFAULT '', partition INTEGER NOT NULL DEFAULT 0,
  decision TEXT NOT NULL, binding TEXT NOT NULL, mode TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  run_id TEXT NOT NULL DEFAULT '', deadline_at INTEGER NOT NULL DEFAULT 0, received INTEGER NOT NULL, sent INTEGER NOT NULL DEFAULT 0,
  handle TEXT NOT NULL DEFAULT '', text TEXT NOT NULL, data TEXT NOT NULL, sum INTEGER NOT NULL, seal INTEGER NOT NULL,
  UNIQUE (source, account, key)
);
CREATE INDEX inputs_open ON inputs (session_id, seq) WHERE state IN ('queued', 'taken', 'stale');
CREATE INDEX inputs_context ON inputs (session_id, seq) WHERE state = 'context';
CREATE INDEX inputs_newest ON inputs (room_id, seq) WHERE source IN ('discord', 'slack') AND kind = 'message';
CREATE TABLE runs (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL, parent_run TEXT, parent_call TEXT, task_id TEXT NOT NULL DEFAULT '',
  requester TEXT NOT NULL, role TEXT NOT NULL, room_id TEXT NOT NULL DEFAULT '', state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '', epoch INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 1, stop_by TEXT NOT NULL DEFAULT '', pause_by TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '', usage TEXT NOT NULL DEFAULT '{}', usd DOUBLE PRECISION, started INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0,
  first_n INTEGER NOT NULL DEFAULT 0, last_n INTEGER NOT NULL DEFAULT 0,
  seal INTEGER NOT NULL, end_seal INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE UNIQUE INDEX runs_child ON runs (parent_run, parent_call) WHERE parent_run IS NOT NULL;
CREATE UNIQUE INDEX one_live_run ON runs (session_id) WHERE state IN ('running', 'waiting', 'paused');
CREATE TABLE steps (
  run_id TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, call_id TEXT, tool TEXT NOT NULL DEFAULT '', args_hash TEXT NOT NULL DEFAULT '',
  effect TEXT NOT NULL DEFAULT '', state TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL, seal INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, n), UNIQUE (run_id, call_id)
) WITHOUT ROWID;
CREATE TABLE entries (
  session_id TEXT NOT NULL, n INTEGER NOT NULL, run_id TEXT NOT NULL DEFAULT '', step_n INTEGER NOT NULL DEFAULT 0, input_id TEXT,
  role TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL, seal INTEGER NOT NULL,
  PRIMARY KEY (session_id, n)
);
CREATE UNIQUE INDEX entries_input ON entries (input_id) WHERE input_id IS NOT NULL;
CREATE TABLE outbound (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL, room_id TEXT NOT NULL, run_id TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL,
  body TEXT NOT NULL DEFAULT '', body_ref TEXT NOT NULL DEFAULT '', sum INTEGER NOT NULL, seal INTEGER NOT NULL, state TEXT NOT NULL, not_after INTEGER NOT NULL DEFAULT 0,
  on_unknown TEXT NOT NULL DEFAULT 'mark', reply_to TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL
);
CREATE INDEX outbound_questions ON outbound (room_id) WHERE kind = 'approval';
CREATE TABLE parts (
  outbound_id TEXT NOT NULL, n INTEGER NOT NULL, token TEXT NOT NULL, from_off INTEGER NOT NULL, to_off INTEGER NOT NULL,
  blob TEXT NOT NULL DEFAULT '', state TEXT NOT NULL, epoch INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL DEFAULT 0,
  remote_id TEXT NOT NULL DEFAULT '', remote_sum INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', seal INTEGER NOT NULL,
  PRIMARY KEY (outbound_id, n)
) WITHOUT ROWID;
CREATE INDEX parts_open ON parts (outbound_id) WHERE state NOT IN ('sent', 'cancelled');

CREATE TABLE approvals (
  id TEXT PRIMARY KEY, run_id TEXT NOT NULL, call_id TEXT NOT NULL, session_id TEXT NOT NULL, session TEXT NOT NULL, agent TEXT NOT NULL,
  tool TEXT NOT NULL, hash TEXT NOT NULL, requester TEXT NOT NULL, role TEXT NOT NULL, room_id TEXT NOT NULL DEFAULT '', domain TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL, sum INTEGER NOT NULL, seal INTEGER NOT NULL, state TEXT NOT NULL, created INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  decided_at INTEGER NOT NULL DEFAULT 0, decided_by TEXT NOT NULL DEFAULT '', via TEXT NOT NULL DEFAULT '', scope TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '', external_ref TEXT NOT NULL DEFAULT '',
  UNIQUE (run_id, call_id)
);
CREATE INDEX approvals_open ON approvals (id) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_grants ON approvals (session_id, tool) WHERE scope = 'session';
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, agent TEXT NOT NULL, session_key TEXT NOT NULL, state TEXT NOT NULL, next_at INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL
);
CREATE TABLE slots (
  task_id TEXT NOT NULL, slot INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', input_id TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (task_id, slot)
);
CREATE TABLE holds (
  run_id TEXT NOT NULL, n INTEGER NOT NULL, scope TEXT NOT NULL, usd DOUBLE PRECISION, tokens INTEGER NOT NULL,
  PRIMARY KEY (run_id, n, scope)
);
CREATE TABLE leases (name TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch INTEGER NOT NULL, until INTEGER NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE answers (
  person_id TEXT NOT NULL, key TEXT NOT NULL, hash TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL, created INTEGER NOT NULL,
  PRIMARY KEY (person_id, key)
) WITHOUT ROWID;
CREATE INDEX answers_created ON answers (created);
CREATE TABLE audit (chain TEXT NOT NULL, n INTEGER NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (chain, n));
CREATE TABLE usage (day TEXT NOT NULL, scope TEXT NOT NULL, tokens INTEGER NOT NULL, usd DOUBLE PRECISION, PRIMARY KEY (day, scope));
CREATE TABLE blobs (ref TEXT PRIMARY KEY, size INTEGER NOT NULL, mime TEXT NOT NULL DEFAULT '', created INTEGER NOT NULL);
CREATE TABLE uploads (
  ref TEXT NOT NULL, person_id TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL, size INTEGER NOT NULL, created INTEGER NOT NULL,
  PRIMARY KEY (ref, person_id)
) WITHOUT ROWID;
CREATE INDEX uploads_person ON uploads (person_id, created);
CREATE TABLE memory (id TEXT PRIMARY KEY, agent TEXT NOT NULL, scope TEXT NOT NULL, body TEXT NOT NULL, created INTEGER NOT NULL);

-- +goose Down
DROP TABLE memory; DROP TABLE uploads; DROP TABLE blobs; DROP TABLE usage; DROP TABLE audit; DROP TABLE answers; DROP TABLE settings; DROP TABLE leases; DROP TABLE holds;
DROP TABLE slots; DROP TABLE tasks; DROP TABLE approvals; DROP TABLE parts; DROP TABLE outbound; DROP TABLE entries; DROP TABLE steps;
DROP TABLE runs; DROP TABLE inputs; DROP TABLE sessions; DROP TABLE moves; DROP TABLE rooms; DROP TABLE pairings; DROP TABLE links; DROP TABLE accounts; DROP TABLE people;
