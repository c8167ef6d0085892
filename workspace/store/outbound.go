// Outbounds: answers, notices and questions that are to be sent.

package store

import (
	"crypto/sha256"
	"fmt"
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
	InputID   workspace.InputID // that it answers; empty: none
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

const insertOutbound = `INSERT INTO outbound (` + sealedOutbound + `, input_id, body, sum, state, seal)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`

func (t *tx) outbound(n NewOutbound) (o workspace.Outbound, err error) {
	if n.RoomID == "" {
		return o, nil
	}
	o = workspace.Outbound{ID: outboundID(n.Key, n.RunID), Key: n.Key, RoomID: n.RoomID, RunID: n.RunID, InputID: n.InputID, Kind: n.Kind,
		Text: engine.Clean(n.Text), BodyRef: n.Ref, State: workspace.OutFinal, NotAfter: n.NotAfter, OnUnknown: n.OnUnknown, ReplyTo: n.ReplyTo,
		Created: fromMillis(t.Now)}
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
	stored, err := t.Exec(insertOutbound, append(args, string(o.InputID), o.Text, engine.Sum(o.Text), string(o.State), check)...)
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

// nextOutbound is the next number of an outbound: it grows over all rooms, so it orders each of them.
func (t *tx) nextOutbound() int64 {
	t.s.cache.outN++
	return t.s.cache.outN
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
func outboundID(key string, run workspace.RunID) workspace.OutboundID {
	if run != "" && key == workspace.AnswerKey(run) {
		return workspace.OutboundID(run)
	}
	sum := sha256.Sum256([]byte(key))
	return workspace.OutboundID(ulid.ULID(sum[:16]).String())
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
		WHERE id = ? AND state IN ('open', 'cancelled')`, o.Text, o.BodyRef, engine.Sum(o.Text), string(o.Kind), check,
		string(o.ID)); err != nil {
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

// entryOfRef finds the entry e that an outbound o refers to (entryRef).
const entryOfRef = `e.session_id = SUBSTR(o.body_ref, 7, 26) AND e.n = CAST(NULLIF(SUBSTR(o.body_ref, 34), '') AS INTEGER)`

const outboundRead = `o.id, o.key, o.room_id, o.n, o.run_id, o.input_id, o.kind, o.body, o.body_ref, o.sum, o.state, o.not_after,
	o.on_unknown, o.reply_to, o.created, COALESCE(e.body, ''), COALESCE(e.sum, 0) FROM outbound o LEFT JOIN entries e
	ON o.body_ref <> '' AND ` + entryOfRef

func (s *Store) outbounds(where string, args ...any) ([]workspace.Outbound, error) {
	var out []workspace.Outbound
	err := s.db.Many(`SELECT `+outboundRead+` WHERE `+where, args, func(scan func(...any) error) error {
		var o workspace.Outbound
		var check, notAfter, created, entrySum int64
		var entry string
		if err := scan(&o.ID, &o.Key, &o.RoomID, &o.N, &o.RunID, &o.InputID, &o.Kind, &o.Text, &o.BodyRef, &check, &o.State, &notAfter,
			&o.OnUnknown, &o.ReplyTo, &created, &entry, &entrySum); err != nil {
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
	err = s.db.Many(`SELECT `+partColumns+` FROM parts WHERE outbound_id IN (SELECT o.id FROM outbound o WHERE `+where+`)
		ORDER BY outbound_id, n`, args, func(scan func(...any) error) error {
		p, err := scanPart(scan)
		if i, ok := at[p.OutboundID]; ok { // one that came in between belongs to the next look
			out[i].Parts = append(out[i].Parts, p)
		}
		return err
	})
	return out, err
}

// OpenOutbound lists outbound with parts that are neither sent, cancelled nor dead, in the order of their rooms.
func (s *Store) OpenOutbound() ([]workspace.Outbound, error) {
	return s.outbounds(`o.id IN (SELECT outbound_id FROM parts WHERE ` + openPart + ` AND state <> 'dead') ORDER BY o.room_id, o.n`)
}

// OutboundByKey finds an outbound by its key; that of a run's answer is found by OutboundOfRun.
func (s *Store) OutboundByKey(key string) (workspace.Outbound, error) {
	return s.OutboundByID(outboundID(key, ""))
}

// OutboundByID finds an outbound.
func (s *Store) OutboundByID(id workspace.OutboundID) (workspace.Outbound, error) {
	return first(s.outbounds(`o.id = ?`, string(id)))
}

// OutboundOfRun is the answer of a run; workspace.ErrNotFound: it has none that is sent anywhere.
func (s *Store) OutboundOfRun(id workspace.RunID) (workspace.Outbound, error) {
	return s.OutboundByID(outboundID(workspace.AnswerKey(id), id))
}

func sealOutbound(o workspace.Outbound) (args []any, check int64) {
	args = []any{string(o.ID), o.Key, string(o.RoomID), o.N, string(o.RunID), millis(o.NotAfter), string(o.OnUnknown), string(o.ReplyTo),
		millis(o.Created), string(o.Kind), o.BodyRef}
	return args, engine.Seal(args...)
}
