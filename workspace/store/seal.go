package store

import (
	"parley/workspace"
	"parley/workspace/store/engine"
)

// The columns that never change once a row is stored, in the order of its seal. SQLite does not notice a flipped bit
// inside a cell; sum covers a row's payload, the seal all else that is relied on. What changes on the way is
// held against what it may be: states against their tables, run and session ids against their rows. An UPDATE of a
// sealed column must write the seal anew, else the daily check calls the database damaged (a test reads the SQL).
const (
	sealedInput = `seq, id, source, account, key, kind, target_key, room_id, person_id, role, sender, agent, partition, decision, binding, mode,
		deadline_at, received, sent`
	sealedRun      = `id, session_id, parent_run, parent_call, task_id, requester, role, room_id, started, first_n`
	endedRun       = `reason, error, model, usage, usd, ended, last_n` // set by a run's end: end_seal
	sealedStep     = `run_id, n, kind, call_id, tool, args_hash, effect, started`
	sealedEntry    = `session_id, n, run_id, step_n, input_id, role, at`
	sealedOutbound = `id, key, room_id, n, run_id, not_after, on_unknown, reply_to, created, kind, body_ref` // the last two until a stream ends
	sealedApproval = `id, run_id, call_id, session_id, session, agent, tool, hash, requester, role, room_id, domain, created, expires_at`
	sealedPart     = `outbound_id, n, token, from_off, to_off, blob`
)

func sealOutbound(o workspace.Outbound) (args []any, check int64) {
	args = []any{string(o.ID), o.Key, string(o.RoomID), o.N, string(o.RunID), millis(o.NotAfter), string(o.OnUnknown), string(o.ReplyTo),
		millis(o.Created), string(o.Kind), o.BodyRef}
	return args, engine.Seal(args...)
}

func sealPart(p workspace.Part) int64 {
	return engine.Seal(string(p.OutboundID), p.N, p.Token, p.From, p.To, p.Blob)
}
