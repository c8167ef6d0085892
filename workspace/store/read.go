package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

// What the partial indexes are made of: a query that does not say it word for word reads the whole table, and so does
// one that asks SQLite for the table's own order (hence + before an ordering column).
const (
	openInput    = `state IN ('queued', 'taken', 'stale')`
	openPart     = `state NOT IN ('sent', 'cancelled')`
	liveRun      = `state IN ('running', 'waiting', 'paused')`
	contextInput = `state = 'context'`
	openApproval = `state IN ('pending', 'approved')`
	question     = `kind = 'approval'`
	backfilled   = `backfill = 1`
)

const inputColumns = `seq, id, source, account, key, kind, target_key, room_id, person_id, role, sender, session_id, agent, partition,
	decision, binding, mode, state, reason, run_id, deadline_at, received, sent, text, data, sum`

func scanInput(scan func(...any) error) (in workspace.Input, err error) {
	var decision, binding, data string
	var deadline, received, sent, check int64
	err = scan(&in.Seq, &in.ID, &in.Source, &in.Account, &in.Key, &in.Kind, &in.TargetKey, &in.RoomID, &in.Person, &in.Role, &in.Sender,
		&in.SessionID, &in.Agent, &in.Partition, &decision, &binding, &in.Mode, &in.State, &in.Reason, &in.RunID, &deadline, &received, &sent,
		&in.Text, &data, &check)
	if err != nil {
		return in, err
	}
	if engine.SumPair(in.Text, data) != check {
		return in, fmt.Errorf("input %s: %w", in.ID, ErrDamaged)
	}
	in.Deadline, in.Received, in.Sent = fromMillis(deadline), fromMillis(received), fromMillis(sent)
	return in, errors.Join(decode(decision, &in.Decision), decode(binding, &in.Binding),
		decode(data, &in.Data))
}

func (t *tx) inputByKey(source, account, key string) (in workspace.Input, err error) {
	err = t.Rows(`SELECT `+inputColumns+` FROM inputs WHERE source = ? AND account = ? AND key = ?`, []any{source, account, key},
		func(scan func(...any) error) error {
			in, err = scanInput(scan)
			return err
		})
	if err == nil && in.ID == "" {
		err = workspace.ErrNotFound
	}
	return in, err
}

func (s *Store) inputs(where string, args ...any) ([]workspace.Input, error) {
	var out []workspace.Input
	err := s.db.Many(`SELECT `+inputColumns+` FROM inputs WHERE `+where, args, func(scan func(...any) error) error {
		in, err := scanInput(scan)
		out = append(out, in)
		return err
	})
	return out, err
}

// Input reads one input.
func (s *Store) Input(id workspace.InputID) (workspace.Input, error) {
	list, err := s.inputs(`id = ?`, string(id))
	if err == nil && len(list) == 0 {
		return workspace.Input{}, workspace.ErrNotFound
	}
	if err != nil {
		return workspace.Input{}, err
	}
	return list[0], nil
}

// InputByKey reads one input by its key.
func (s *Store) InputByKey(source, account, key string) (workspace.Input, error) {
	list, err := s.inputs(`source = ? AND account = ? AND key = ?`, source, account, key)
	if err == nil && len(list) == 0 {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return workspace.Input{}, err
	}
	return list[0], nil
}

// Queued lists inputs that wait for a turn, in order of arrival.
func (s *Store) Queued() ([]workspace.Input, error) {
	return s.inputs(openInput + ` AND state = 'queued' ORDER BY +seq`)
}

// StaleInputs lists the parked inputs of a room, in order.
func (s *Store) StaleInputs(room workspace.RoomID) ([]workspace.Input, error) {
	return s.inputs(openInput+` AND state = 'stale' AND reason <> 'deleted' AND room_id = ? ORDER BY +seq`, string(room))
}

// LastTaken is the seq of the newest input that a turn of the session took; 0: none.
func (s *Store) LastTaken(session workspace.SessionID) (seq int64, err error) {
	err = s.db.One(`SELECT i.seq FROM entries e JOIN inputs i ON i.id = e.input_id WHERE e.session_id = ? AND e.input_id IS NOT NULL ORDER BY e.n DESC LIMIT 1`,
		[]any{string(session)}, &seq)
	if errors.Is(err, workspace.ErrNotFound) {
		return 0, nil
	}
	return seq, err
}

// ContextInputs lists the newest n lines of others in a session, oldest first, that came after seq. What was deleted
// is not among them.
func (s *Store) ContextInputs(session workspace.SessionID, after int64, n int) ([]workspace.Input, error) {
	list, err := s.inputs(`session_id = ? AND `+contextInput+` AND reason <> 'deleted' AND seq > ? ORDER BY seq DESC LIMIT ?`,
		string(session), after, n)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, err
}

// RunInputs lists the inputs that a run took, in order.
func (s *Store) RunInputs(run workspace.RunID) ([]workspace.Input, error) {
	return s.inputs(`seq IN (SELECT i.seq FROM runs r JOIN entries e ON e.session_id = r.session_id AND e.n >= r.first_n
			AND e.n <= CASE WHEN r.last_n = 0 THEN 9000000000000000000 ELSE r.last_n END JOIN inputs i ON i.id = e.input_id WHERE r.id = ? AND e.run_id = r.id
		UNION SELECT i.seq FROM runs r JOIN inputs i ON i.session_id = r.session_id WHERE r.id = ? AND i.`+openInput+` AND i.state = 'taken' AND i.run_id = r.id)
		ORDER BY seq`, string(run), string(run))
}

const runColumns = `id, session_id, COALESCE(parent_run, ''), COALESCE(parent_call, ''), task_id, requester, role, room_id, state, reason, error,
	epoch, tries, stop_by, pause_by, model, usage, started, ended, deadline, trouble`

func scanRun(scan func(...any) error) (r workspace.Run, err error) {
	var usage, trouble string
	var started, ended, deadline int64
	err = scan(&r.ID, &r.SessionID, &r.ParentRun, &r.ParentCall, &r.TaskID, &r.Requester, &r.Role, &r.RoomID, &r.State, &r.Reason, &r.Error,
		&r.Epoch, &r.Tries, &r.StopBy, &r.PauseBy, &r.Model, &usage, &started, &ended, &deadline, &trouble)
	if err != nil {
		return r, err
	}
	r.Started, r.Ended, r.Deadline = fromMillis(started), fromMillis(ended), fromMillis(deadline)
	if trouble != "" {
		if err := decode(trouble, &r.Trouble); err != nil {
			return r, err
		}
	}
	return r, decode(usage, &r.Usage)
}

func (t *tx) run(id workspace.RunID) (r workspace.Run, err error) {
	err = t.Rows(`SELECT `+runColumns+` FROM runs WHERE id = ?`, []any{string(id)}, func(scan func(...any) error) error {
		r, err = scanRun(scan)
		return err
	})
	if err == nil && r.ID == "" {
		err = workspace.ErrNotFound
	}
	return r, err
}

func (s *Store) runs(where string, args ...any) ([]workspace.Run, error) {
	var out []workspace.Run
	err := s.db.Many(`SELECT `+runColumns+` FROM runs WHERE `+where, args, func(scan func(...any) error) error {
		r, err := scanRun(scan)
		out = append(out, r)
		return err
	})
	return out, err
}

// Run reads one run.
func (s *Store) Run(id workspace.RunID) (workspace.Run, error) {
	list, err := s.runs(`id = ?`, string(id))
	if err == nil && len(list) == 0 {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return workspace.Run{}, err
	}
	return list[0], nil
}

// LiveRuns lists runs that hold their session.
func (s *Store) LiveRuns() ([]workspace.Run, error) {
	list, err := s.runs(liveRun) // an ORDER BY id would read all runs
	slices.SortFunc(list, func(a, b workspace.Run) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list, err
}

// LastRun is the newest run of a session.
func (s *Store) LastRun(session workspace.SessionID) (workspace.Run, error) {
	list, err := s.runs(`id = (SELECT run_id FROM entries WHERE session_id = ? AND run_id <> '' ORDER BY n DESC LIMIT 1)`, string(session))
	if err == nil && len(list) == 0 {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return workspace.Run{}, err
	}
	return list[0], nil
}

// Steps lists a run's journal in order.
func (s *Store) Steps(run workspace.RunID) ([]workspace.Step, error) {
	var out []workspace.Step
	err := s.db.Many(`SELECT run_id, n, kind, COALESCE(call_id, ''), tool, args_hash, effect, state, body, sum, started, ended FROM steps WHERE run_id = ? ORDER BY n`,
		[]any{string(run)}, func(scan func(...any) error) error {
			var st workspace.Step
			var body string
			var check, started, ended int64
			if err := scan(&st.RunID, &st.N, &st.Kind, &st.CallID, &st.Tool, &st.ArgsHash, &st.Effect, &st.State, &body, &check, &started, &ended); err != nil {
				return err
			}
			if engine.Sum(body) != check {
				return fmt.Errorf("step %d of run %s: %w", st.N, st.RunID, ErrDamaged)
			}
			st.Started, st.Ended = fromMillis(started), fromMillis(ended)
			out = append(out, st)
			return decode(body, &out[len(out)-1].Body)
		})
	return out, err
}

// Entries lists a session's transcript after n, oldest first, at most limit. A user's text is read from its input.
func (s *Store) Entries(session workspace.SessionID, after int64, limit int) ([]workspace.Entry, error) {
	return s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.n > ? ORDER BY e.n LIMIT ?`, string(session), after, limit)
}

// LastEntries lists the newest entries of a session, oldest first, at most limit.
func (s *Store) LastEntries(session workspace.SessionID, limit int) ([]workspace.Entry, error) {
	list, err := s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? ORDER BY e.n DESC LIMIT ?`, string(session), limit)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, err
}

// InputEntry reads the transcript's line of one input.
func (s *Store) InputEntry(id workspace.InputID) (workspace.Entry, error) {
	list, err := s.entries(`SELECT `+entryRead+` WHERE e.input_id = ?`, string(id))
	if err == nil && len(list) == 0 {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return workspace.Entry{}, err
	}
	return list[0], nil
}

// RunEntries lists the transcript's lines of one run, in order.
func (s *Store) RunEntries(session workspace.SessionID, run workspace.RunID) ([]workspace.Entry, error) {
	return s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.run_id = ? AND e.n >= (SELECT first_n FROM runs WHERE id = ?)
		AND e.n <= (SELECT CASE WHEN last_n = 0 THEN 9000000000000000000 ELSE last_n END FROM runs WHERE id = ?) ORDER BY e.n`,
		string(session), string(run), string(run), string(run))
}

const entryRead = `e.session_id, e.n, e.run_id, e.step_n, COALESCE(e.input_id, ''), e.role, e.at, e.body, e.sum, COALESCE(i.text, ''), COALESCE(i.data, ''),
	COALESCE(i.sum, 0), COALESCE(i.sender, '') FROM entries e LEFT JOIN inputs i ON i.id = e.input_id`

func (s *Store) entries(q string, args ...any) ([]workspace.Entry, error) {
	var out []workspace.Entry
	err := s.db.Many(q, args, func(scan func(...any) error) error {
		var e workspace.Entry
		var body, text, data, sender string
		var at, check, inputCheck int64
		if err := scan(&e.SessionID, &e.N, &e.RunID, &e.StepN, &e.InputID, &e.Role, &at, &body, &check, &text, &data, &inputCheck, &sender); err != nil {
			return err
		}
		if engine.Sum(body) != check || e.InputID != "" && data != "" && engine.SumPair(text, data) != inputCheck {
			return fmt.Errorf("entry %d of session %s: %w", e.N, e.SessionID, ErrDamaged)
		}
		e.At = fromMillis(at)
		if err := decode(body, &e.Body); err != nil {
			return err
		}
		if e.InputID != "" {
			if e.Role == workspace.RoleUser {
				e.Body = UserBody(e.Body, workspace.Input{Text: text, Sender: sender})
			} else { // a command, with its reply in Content
				e.Body.Context = append(e.Body.Context, workspace.ContextLine{Name: sender, Text: text})
			}
		}
		out = append(out, e)
		return nil
	})
	return out, err
}

// UserBody is a user's entry with the text that its input holds.
func UserBody(b workspace.EntryBody, in workspace.Input) workspace.EntryBody {
	b.Name = in.Sender
	b.Content = append([]workspace.Content{{Kind: workspace.Text, Text: in.Text}}, b.Content...)
	return b
}

// Room reads one room.
func (s *Store) Room(id workspace.RoomID) (r workspace.Room, err error) {
	err = s.db.One(`SELECT id, network, account, peer_kind, peer, thread, title FROM rooms WHERE id = ?`, []any{string(id)},
		&r.ID, &r.Network, &r.Account, &r.Kind, &r.Peer, &r.Thread, &r.Title)
	return r, err
}

// RoomByAddress finds a room.
func (s *Store) RoomByAddress(a channels.Address) (r workspace.Room, err error) {
	err = s.db.One(`SELECT id, title FROM rooms WHERE network = ? AND account = ? AND peer_kind = ? AND peer = ? AND thread = ?`,
		[]any{string(a.Network), string(a.Account), string(a.Kind), string(a.Peer), string(a.Thread)}, &r.ID, &r.Title)
	r.Address = a
	return r, err
}

const sessionColumns = `id, key, gen, agent, name, created, ended, hidden, compacted, forked_from, forked_before, overrides, usage`

func (s *Store) sessions(where string, args ...any) ([]workspace.Session, error) {
	var out []workspace.Session
	err := s.db.Many(`SELECT `+sessionColumns+` FROM sessions WHERE `+where, args, func(scan func(...any) error) error {
		var ses workspace.Session
		var key, overrides, usage string
		var created, ended int64
		err := scan(&ses.ID, &key, &ses.Gen, &ses.Agent, &ses.Name, &created, &ended, &ses.Hidden, &ses.Compacted, &ses.ForkedFrom, &ses.ForkedBefore, &overrides, &usage)
		if err != nil {
			return err
		}
		if ses.Key, err = parseKey(key); err != nil {
			return err
		}
		ses.Created, ses.Ended = fromMillis(created), fromMillis(ended)
		out = append(out, ses)
		last := &out[len(out)-1]
		return errors.Join(decode(overrides, &last.Overrides), decode(usage, &last.Tokens))
	})
	return out, err
}

// Session reads one generation.
func (s *Store) Session(id workspace.SessionID) (workspace.Session, error) {
	return firstSession(s.sessions(`id = ?`, string(id)))
}

// SessionByKey reads the newest generation of a key.
func (s *Store) SessionByKey(key workspace.Key) (workspace.Session, error) {
	return firstSession(s.sessions(`key = ? ORDER BY gen DESC LIMIT 1`, key.String()))
}

func firstSession(list []workspace.Session, err error) (workspace.Session, error) {
	if err != nil {
		return workspace.Session{}, err
	}
	if len(list) == 0 {
		return workspace.Session{}, workspace.ErrNotFound
	}
	return list[0], nil
}

// entryOfRef finds the entry e that an outbound o refers to (entryRef).
const entryOfRef = `e.session_id = SUBSTR(o.body_ref, 7, 26) AND e.n = CAST(NULLIF(SUBSTR(o.body_ref, 34), '') AS INTEGER)`

const outboundRead = `o.id, o.key, o.room_id, o.n, o.run_id, o.kind, o.body, o.body_ref, o.sum, o.state, o.not_after, o.on_unknown, o.reply_to, o.created,
	COALESCE(e.body, ''), COALESCE(e.sum, 0) FROM outbound o LEFT JOIN entries e
	ON o.body_ref <> '' AND ` + entryOfRef

func (s *Store) outbounds(where string, args ...any) ([]workspace.Outbound, error) {
	var out []workspace.Outbound
	err := s.db.Many(`SELECT `+outboundRead+` WHERE `+where, args, func(scan func(...any) error) error {
		var o workspace.Outbound
		var check, notAfter, created, entrySum int64
		var entry string
		if err := scan(&o.ID, &o.Key, &o.RoomID, &o.N, &o.RunID, &o.Kind, &o.Text, &o.BodyRef, &check, &o.State, &notAfter, &o.OnUnknown, &o.ReplyTo,
			&created, &entry, &entrySum); err != nil {
			return err
		}
		if engine.Sum(o.Text) != check || entry != "" && engine.Sum(entry) != entrySum {
			return fmt.Errorf("outbound %s: %w", o.ID, ErrDamaged)
		}
		if o.BodyRef != "" && entry != "" {
			var body workspace.EntryBody
			if err := decode(entry, &body); err != nil {
				return err
			}
			o.Text = body.Plain()
		}
		o.NotAfter, o.Created = fromMillis(notAfter), fromMillis(created)
		out = append(out, o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	at := make(map[workspace.OutboundID]int, len(out))
	for i := range out {
		at[out[i].ID] = i
	}
	err = s.db.Many(`SELECT `+partColumns+` FROM parts WHERE outbound_id IN (SELECT o.id FROM outbound o WHERE `+where+`) ORDER BY outbound_id, n`, args,
		func(scan func(...any) error) error {
			p, err := scanPart(scan)
			if i, ok := at[p.OutboundID]; ok { // one that came in between belongs to the next look
				out[i].Parts = append(out[i].Parts, p)
			}
			return err
		})
	return out, err
}

// Undelivered lists outbound with parts that are neither sent, cancelled nor dead, in the order of their rooms.
func (s *Store) Undelivered() ([]workspace.Outbound, error) {
	return s.outbounds(`o.id IN (SELECT outbound_id FROM parts WHERE ` + openPart + ` AND state <> 'dead') ORDER BY o.room_id, o.n`)
}

// OutboundByKey finds an answer by its key.
func (s *Store) OutboundByKey(key string) (workspace.Outbound, error) {
	list, err := s.outbounds(`o.id = ?`, string(outboundID(key)))
	if err == nil && len(list) == 0 {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return workspace.Outbound{}, err
	}
	return list[0], nil
}

// Person finds who a network user is.
func (s *Store) Person(network channels.Network, account channels.AccountID, user channels.UserID) (p workspace.Person, err error) {
	var most workspace.Role
	err = s.db.One(`SELECT p.id, p.role, p.name, p.tz, a.most, p.configured = 1 AND a.most = '' OR EXISTS (SELECT 1 FROM pairings q
		WHERE q.network = a.network AND q.account = a.account AND q."user" = a."user" AND q.state = 'approved')
		FROM accounts a JOIN people p ON p.id = a.person_id WHERE a.network = ? AND a.account = ? AND a."user" = ?`,
		[]any{string(network), string(account), string(user)}, &p.ID, &p.Role, &p.Name, &p.TZ, &most, &p.Vouched)
	p.Role = p.Role.Lower(most)
	return p, err
}

// PersonByID reads one person.
func (s *Store) PersonByID(id workspace.PersonID) (p workspace.Person, err error) {
	err = s.db.One(`SELECT id, role, name, tz FROM people WHERE id = ?`, []any{string(id)}, &p.ID, &p.Role, &p.Name, &p.TZ)
	return p, err
}

// People lists all people with their accounts.
func (s *Store) People() (people []workspace.Person, accounts []workspace.Account, err error) {
	err = s.db.Many(`SELECT id, role, name, tz FROM people WHERE joined = '' ORDER BY id`, nil, func(scan func(...any) error) error {
		var p workspace.Person
		err := scan(&p.ID, &p.Role, &p.Name, &p.TZ)
		people = append(people, p)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = s.db.Many(`SELECT network, account, "user", person_id FROM accounts ORDER BY network, account, "user"`, nil, func(scan func(...any) error) error {
		var a workspace.Account
		err := scan(&a.Network, &a.Account, &a.User, &a.Person)
		accounts = append(accounts, a)
		return err
	})
	return people, accounts, err
}

const pairingColumns = `id, channel, network, account, "user", name, state, requested, code_hash, issued, tries, decided, decided_by`

func (s *Store) pairings(where string, args ...any) ([]workspace.Pairing, error) {
	var out []workspace.Pairing
	err := s.db.Many(`SELECT `+pairingColumns+` FROM pairings WHERE `+where, args, func(scan func(...any) error) error {
		var p workspace.Pairing
		var requested, issued, decided int64
		err := scan(&p.ID, &p.Channel, &p.Network, &p.Account, &p.User, &p.Name, &p.State, &requested, &p.CodeHash, &issued, &p.Tries, &decided, &p.DecidedBy)
		p.Requested, p.Issued, p.Decided = fromMillis(requested), fromMillis(issued), fromMillis(decided)
		out = append(out, p)
		return err
	})
	return out, err
}

// Pairings lists the newest requests, newest first.
func (s *Store) Pairings(limit int) ([]workspace.Pairing, error) {
	return s.pairings(`state <> '' ORDER BY id DESC LIMIT ?`, limit)
}

// LastPairing is a sender's latest request; the zero Pairing when there is none.
func (s *Store) LastPairing(network channels.Network, account channels.AccountID, user channels.UserID) (workspace.Pairing, error) {
	list, err := s.pairings(`network = ? AND account = ? AND "user" = ? ORDER BY id DESC LIMIT 1`, string(network), string(account), string(user))
	if err != nil || len(list) == 0 {
		return workspace.Pairing{}, err
	}
	return list[0], nil
}

// Newest is the newest journalled message of every peer of an account, on networks that are backfilled; of others it
// knows none.
func (s *Store) Newest(network channels.Network, account channels.AccountID) (map[channels.PeerID]channels.MessageID, error) {
	out := map[channels.PeerID]channels.MessageID{}
	err := s.db.Many(`SELECT r.peer, i.data FROM rooms r JOIN inputs i ON i.seq = (SELECT MAX(seq) FROM inputs WHERE room_id = r.id AND `+backfilled+`)
		WHERE r.network = ? AND r.account = ? ORDER BY i.seq`, []any{string(network), string(account)}, func(scan func(...any) error) error {
		var peer, data string
		if err := scan(&peer, &data); err != nil {
			return err
		}
		var d workspace.InputData
		if err := decode(data, &d); err != nil {
			return err
		}
		out[channels.PeerID(peer)] = d.Message
		return nil
	})
	return out, err
}
