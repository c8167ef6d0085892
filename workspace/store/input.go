// Inputs, the rows of the journal: how one ends without a run, and readers.

package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

// Ending is how a unit ends an input outside of a run.
type Ending struct {
	Seq    int64
	From   workspace.InputState
	To     workspace.InputState
	Reason string
}

// EndInputs moves inputs that no run took — dropped, cancelled, stale, or queued again by /resume — with the
// notices that say so, in one commit.
func (s *Store) EndInputs(ends []Ending, notices ...NewOutbound) ([]workspace.Outbound, error) {
	var out []workspace.Outbound
	err := s.do("end inputs", func(t *tx) error {
		out = nil
		for _, e := range ends {
			if err := t.endInput(e); err != nil {
				return err
			}
		}
		return t.outbounds(notices, &out)
	})
	return out, err
}

func (e Ending) apply(t *tx, _ *Did) error { return t.endInput(e) }

func (t *tx) endInput(e Ending) error {
	if !workspace.Inputs.Can(e.From, e.To) {
		return fmt.Errorf("input %s to %s: %w", e.From, e.To, workspace.ErrConflict)
	}
	return t.One("end an input", `UPDATE inputs SET state = ?, reason = ? WHERE seq = ? AND state = ?`,
		string(e.To), e.Reason, e.Seq, string(e.From))
}

// Hear keeps the transcript of attachment n of an input that no turn has taken yet, and returns after the commit. What
// is kept already stays as it is and is returned. workspace.ErrConflict means that the input waits no more.
func (s *Store) Hear(id workspace.InputID, n int, text string) (string, error) {
	kept := ""
	err := s.do("hear", func(t *tx) error {
		var seq int64
		var words, body string
		if err := t.Row(`SELECT seq, text, data FROM inputs WHERE id = ? AND state = 'queued'`, []any{string(id)}, &seq, &words,
			&body); err != nil {
			return fmt.Errorf("keep a transcript: %w", orConflict(err))
		}
		var data workspace.InputData
		if err := decode(body, &data); err != nil {
			return fmt.Errorf("keep a transcript: %w", err)
		}
		if was, ok := data.Heard[n]; ok {
			kept = was
			return nil
		}
		if data.Heard == nil {
			data.Heard = map[int]string{}
		}
		kept = engine.Clean(text)
		data.Heard[n] = kept
		now, err := json.Marshal(data)
		if err != nil {
			return err
		}
		return t.One("keep a transcript", `UPDATE inputs SET data = ?, sum = ? WHERE seq = ? AND state = 'queued'`,
			string(now), engine.SumPair(words, string(now)), seq)
	})
	return kept, err
}

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
	return first(s.inputs(`id = ?`, string(id)))
}

// InputByKey reads one input by its key.
func (s *Store) InputByKey(source, account, key string) (workspace.Input, error) {
	return first(s.inputs(`source = ? AND account = ? AND key = ?`, source, account, key))
}

// InputHandle is what the answer to an input may go through, as channels.ReplyHandle packs it; empty: nothing. It is a
// secret, so that it is in no other reader.
func (s *Store) InputHandle(id workspace.InputID) (packed string, err error) {
	err = s.db.One(`SELECT handle FROM inputs WHERE id = ?`, []any{string(id)}, &packed)
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return packed, err
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
	err = s.db.One(`SELECT i.seq FROM entries e JOIN inputs i ON i.id = e.input_id WHERE e.session_id = ? AND e.input_id IS NOT NULL
		ORDER BY e.n DESC LIMIT 1`, []any{string(session)}, &seq)
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
			AND e.n <= CASE WHEN r.last_n = 0 THEN 9000000000000000000 ELSE r.last_n END JOIN inputs i ON i.id = e.input_id WHERE r.id = ?
			AND e.run_id = r.id
		UNION SELECT i.seq FROM runs r JOIN inputs i ON i.session_id = r.session_id WHERE r.id = ? AND i.`+openInput+` AND i.state = 'taken'
		AND i.run_id = r.id) ORDER BY seq`, string(run), string(run))
}

// Newest is the newest journalled message of every peer of an account, on networks that are backfilled; of others it
// knows none.
func (s *Store) Newest(network channels.Network, account channels.AccountID) (map[channels.PeerID]channels.MessageID, error) {
	out := map[channels.PeerID]channels.MessageID{}
	err := s.db.Many(`SELECT r.peer, i.data FROM rooms r
		JOIN inputs i ON i.seq = (SELECT MAX(seq) FROM inputs WHERE room_id = r.id AND `+backfilled+`)
		WHERE r.network = ? AND r.account = ? ORDER BY i.seq`, []any{string(network), string(account)},
		func(scan func(...any) error) error {
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
