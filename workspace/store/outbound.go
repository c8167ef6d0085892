package store

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

// NewOutbound is an answer to store. Its key makes it happen once: a second one with the same key changes nothing,
// except that it finds the open (streamed) one of an earlier try and goes on with that.
type NewOutbound struct {
	Key       string
	RoomID    workspace.RoomID // empty: no outbound at all (a local session is read from its transcript)
	RunID     workspace.RunID
	Kind      workspace.OutboundKind
	Text      string // Markdown; empty when Ref names an entry
	Ref       string
	Spans     []Span
	Sending   bool // the room is idle: the first part is born sending
	Open      bool // a streamed answer: its text comes later
	NotAfter  time.Time
	OnUnknown workspace.OnUnknown
	ReplyTo   channels.MessageID
	// Streamed is the open outbound that this one finishes; it may have been cancelled with its run meanwhile.
	Streamed workspace.OutboundID
}

// Span is one part: offsets into the text, or a file.
type Span struct {
	From, To int
	Blob     string
}

// Outbound stores answers that belong to no other unit — notices, placeholders — and returns after the commit.
func (s *Store) Outbound(list ...NewOutbound) ([]workspace.Outbound, error) {
	var out []workspace.Outbound
	err := s.do("outbound", func(t *tx) error {
		out = nil
		return t.outbounds(list, &out)
	})
	return out, err
}

func (t *tx) outbounds(list []NewOutbound, out *[]workspace.Outbound) error {
	for _, n := range list {
		o, err := t.outbound(n)
		if err != nil {
			return err
		}
		if o.ID != "" {
			*out = append(*out, o)
		}
	}
	return nil
}

const insertOutbound = `INSERT INTO outbound (` + sealedOutbound + `, body, sum, state, seal)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`

func (t *tx) outbound(n NewOutbound) (o workspace.Outbound, err error) {
	if n.RoomID == "" {
		return o, nil
	}
	o = workspace.Outbound{ID: outboundID(n.Key), Key: n.Key, RoomID: n.RoomID, RunID: n.RunID, Kind: n.Kind, Text: engine.Clean(n.Text), BodyRef: n.Ref,
		State: workspace.OutFinal, NotAfter: n.NotAfter, OnUnknown: n.OnUnknown, ReplyTo: n.ReplyTo, Created: fromMillis(t.Now)}
	if o.OnUnknown == "" {
		o.OnUnknown = workspace.MarkUnknown
	}
	if n.Open {
		o.State = workspace.OutOpen
	}
	if n.Streamed != "" {
		return t.finishStreamed(o, n)
	}
	o.N = t.nextOutbound()
	args, check := sealOutbound(o)
	stored, err := t.Exec(insertOutbound, append(args, o.Text, engine.Sum(o.Text), string(o.State), check)...)
	if err != nil {
		return o, err
	}
	if stored == 0 {
		return t.again(o, n)
	}
	t.Count.Answer = o.N
	o.Parts, err = t.insertParts(o.ID, 0, n.Spans, n.Sending)
	return o, err
}

// again is what a key that is known comes to: an open answer of an earlier try is handed back, or finished; of
// any other nothing is stored and an outbound without an id returned.
func (t *tx) again(o workspace.Outbound, n NewOutbound) (workspace.Outbound, error) {
	var state string
	if err := t.Row(`SELECT n, state FROM outbound WHERE id = ?`, []any{string(o.ID)}, &o.N, &state); err != nil {
		return workspace.Outbound{}, err
	}
	if state != string(workspace.OutOpen) {
		return workspace.Outbound{}, nil
	}
	if !n.Open {
		n.Streamed = o.ID
		return t.finishStreamed(o, n)
	}
	var err error
	o.Parts, err = t.parts(o.ID)
	return o, err
}

// outboundID is the id of the one outbound with this key: of a run's answer the run's own, of all else a ULID's worth of
// the key's hash. So one unique index serves both.
func outboundID(key string) workspace.OutboundID {
	if run, ok := strings.CutPrefix(key, "run:"); ok {
		if run, ok = strings.CutSuffix(run, ":answer"); ok && !strings.Contains(run, ":") {
			return workspace.OutboundID(run)
		}
	}
	sum := sha256.Sum256([]byte(key))
	return workspace.OutboundID(ulid.ULID(sum[:16]).String())
}

// insertParts stores the spans from index first on.
func (t *tx) insertParts(id workspace.OutboundID, first int, spans []Span, sending bool) ([]workspace.Part, error) {
	var out []workspace.Part
	for i := first; i < len(spans); i++ {
		p := workspace.Part{OutboundID: id, N: i, Token: string(id) + "." + strconv.Itoa(i), From: spans[i].From, To: spans[i].To,
			Blob: spans[i].Blob, State: workspace.PartReady, Epoch: t.Epoch}
		if sending && i == 0 {
			p.State, p.Tries = workspace.PartSending, 1
		}
		_, err := t.Exec(`INSERT INTO parts (`+sealedPart+`, state, epoch, tries, seal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(id), p.N, p.Token, p.From, p.To, p.Blob, string(p.State), p.Epoch, p.Tries, sealPart(p))
		if err != nil {
			return nil, fmt.Errorf("insert part: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// finishStreamed gives an open outbound its text: the parts that exist keep their token and get new offsets, the
// missing are added, surplus ones are left with an empty span for the sender to remove.
func (t *tx) finishStreamed(o workspace.Outbound, n NewOutbound) (workspace.Outbound, error) {
	o.ID = n.Streamed
	var notAfter, created int64
	if err := t.Row(`SELECT key, room_id, n, run_id, not_after, on_unknown, reply_to, created FROM outbound WHERE id = ?`, []any{string(o.ID)},
		&o.Key, &o.RoomID, &o.N, &o.RunID, &notAfter, &o.OnUnknown, &o.ReplyTo, &created); err != nil {
		return o, orConflict(err)
	}
	o.NotAfter, o.Created = fromMillis(notAfter), fromMillis(created)
	_, check := sealOutbound(o)
	if err := t.One("finish a streamed answer", `UPDATE outbound SET body = ?, body_ref = ?, sum = ?, kind = ?, seal = ?, state = 'final'
		WHERE id = ? AND state IN ('open', 'cancelled')`, o.Text, o.BodyRef, engine.Sum(o.Text), string(o.Kind), check, string(o.ID)); err != nil {
		return o, err
	}
	have, err := t.parts(o.ID)
	if err != nil {
		return o, err
	}
	for i := range have {
		have[i].From, have[i].To = 0, 0
		if i < len(n.Spans) {
			have[i].From, have[i].To, have[i].Blob = n.Spans[i].From, n.Spans[i].To, n.Spans[i].Blob
		}
		if _, err := t.Exec(`UPDATE parts SET from_off = ?, to_off = ?, blob = ?, seal = ? WHERE outbound_id = ? AND n = ?`,
			have[i].From, have[i].To, have[i].Blob, sealPart(have[i]), string(o.ID), have[i].N); err != nil {
			return o, err
		}
	}
	more, err := t.insertParts(o.ID, len(have), n.Spans, false)
	o.Parts = append(have, more...)
	return o, err
}

func (t *tx) parts(id workspace.OutboundID) ([]workspace.Part, error) {
	var out []workspace.Part
	err := t.Rows(`SELECT `+partColumns+` FROM parts WHERE outbound_id = ? ORDER BY n`, []any{string(id)}, func(scan func(...any) error) error {
		p, err := scanPart(scan)
		out = append(out, p)
		return err
	})
	return out, err
}

const partColumns = `outbound_id, n, token, from_off, to_off, blob, state, epoch, tries, next_at, remote_id, error`

func scanPart(scan func(...any) error) (p workspace.Part, err error) {
	var next int64
	err = scan(&p.OutboundID, &p.N, &p.Token, &p.From, &p.To, &p.Blob, &p.State, &p.Epoch, &p.Tries, &next, &p.RemoteID, &p.Error)
	p.NextAt = fromMillis(next)
	return p, err
}

// Move is one edge of a part. What is in sending moves only in the process that began it; a part that an earlier
// boot left there must become unknown first.
type Move struct {
	Part   workspace.Part // OutboundID and N name it
	To     workspace.PartState
	Remote channels.MessageID
	Error  string
	NextAt time.Time
}

// MovePart commits edges and returns after the commit: sending before a send, and what a person decided.
func (s *Store) MovePart(moves ...Move) error {
	return s.do("move part", func(t *tx) error { return t.move(moves) })
}

// Receipt records what a send came to. It keeps its order and is not waited for: after a crash the part is found
// in sending with an older epoch, and that is unknown. A note beside the database covers the moment until then.
func (s *Store) Receipt(moves ...Move) {
	s.db.PostNoted("receipt", receiptLines(moves), unit(func(t *tx) error { return t.move(moves) }))
}

// setRemote keeps the message id that is known when none comes: it takes the id three times, and its sum.
const setRemote = `remote_id = CASE WHEN ? = '' THEN remote_id ELSE ? END, remote_sum = CASE WHEN ? = '' THEN remote_sum ELSE ? END`

func (t *tx) move(moves []Move) error {
	for _, m := range moves {
		var err error
		switch m.To {
		case workspace.PartSending:
			err = t.One("begin to send", `UPDATE parts SET state = 'sending', epoch = ?, tries = tries + 1, next_at = 0 WHERE outbound_id = ? AND n = ? AND state = 'ready' AND epoch <= ?`,
				t.Epoch, string(m.Part.OutboundID), m.Part.N, t.Epoch)
		case workspace.PartUnknown:
			err = t.One("give up knowing", `UPDATE parts SET state = 'unknown', epoch = ?, error = ? WHERE outbound_id = ? AND n = ? AND state = 'sending' AND epoch <= ?`,
				t.Epoch, m.Error, string(m.Part.OutboundID), m.Part.N, t.Epoch)
		case workspace.PartSent:
			err = t.One("receipt", `UPDATE parts SET state = 'sent', `+setRemote+`, error = ''
				WHERE outbound_id = ? AND n = ? AND (state = 'sending' AND epoch = ? OR state IN ('live', 'unknown'))`,
				string(m.Remote), string(m.Remote), string(m.Remote), engine.Sum(string(m.Remote)), string(m.Part.OutboundID), m.Part.N, t.Epoch)
		default:
			from := froms(workspace.Parts, m.To)
			if from == "" {
				return fmt.Errorf("part to %q: %w", m.To, workspace.ErrConflict)
			}
			err = t.One("move part", `UPDATE parts SET state = ?, `+setRemote+`, error = ?, next_at = ?
				WHERE outbound_id = ? AND n = ? AND state IN (`+from+`) AND (state <> 'sending' OR epoch = ?)`, string(m.To), string(m.Remote), string(m.Remote), string(m.Remote), engine.Sum(string(m.Remote)),
				m.Error, millis(m.NextAt), string(m.Part.OutboundID), m.Part.N, t.Epoch)
		}
		if err != nil {
			return fmt.Errorf("part %s.%d to %s: %w", m.Part.OutboundID, m.Part.N, m.To, err)
		}
	}
	return nil
}

// Dead moves a part to dead, cancels the rest of its outbound, and stores the one notice that says so.
func (s *Store) Dead(m Move, notice *NewOutbound) ([]workspace.Outbound, error) {
	var out []workspace.Outbound
	err := s.do("dead letter", func(t *tx) error {
		out = nil
		m.To = workspace.PartDead
		if err := t.move([]Move{m}); err != nil {
			return err
		}
		if _, err := t.Exec(`UPDATE parts SET state = 'cancelled' WHERE outbound_id = ? AND n > ? AND `+openPart+` AND state IN ('ready', 'parked')`,
			string(m.Part.OutboundID), m.Part.N); err != nil {
			return err
		}
		if notice == nil {
			return nil
		}
		return t.outbounds([]NewOutbound{*notice}, &out)
	})
	return out, err
}
