// Undelivered answers, sent after all or dropped.

package store

import (
	"fmt"

	"parley/workspace"
)

// OutboundIn lists what an operator sends or drops: answers with a part in one of the states, the newest first,
// those with a smaller id than after; empty: from the newest on.
func (s *Store) OutboundIn(states []workspace.PartState, after workspace.OutboundID, limit int) ([]workspace.Outbound, error) {
	var args []any
	for _, st := range states {
		args = append(args, string(st))
	}
	where := `o.id IN (SELECT outbound_id FROM parts WHERE ` + openPart + ` AND state IN (` + marks(len(states)) + `))`
	if after != "" {
		where += ` AND o.id < ?`
		args = append(args, string(after))
	}
	return s.outbounds(where+` ORDER BY o.id DESC LIMIT ?`, append(args, limit)...)
}

// marks is n question marks for a list.
func marks(n int) string {
	out := make([]byte, 0, 2*n)
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '?')
	}
	return string(out)
}

// Parked lists the answers of a room that were set aside because of their age, in order: /resume sends them.
func (s *Store) Parked(room workspace.RoomID) ([]workspace.Outbound, error) {
	return s.outbounds(`o.room_id = ? AND o.id IN (SELECT outbound_id FROM parts WHERE `+openPart+` AND state = 'parked') ORDER BY o.n`,
		string(room))
}

// undelivered are the states of a part that a person decides about.
func undelivered(p workspace.Part) bool {
	switch p.State {
	case workspace.PartDead, workspace.PartParked:
		return true
	case workspace.PartUnknown:
		return p.RemoteID == "" // a known message is edited, and comes out of the doubt by itself
	}
	return false
}

// Retry makes what is undelivered of an answer ready again, as if it had never been tried and had no age, and returns it after
// the commit, for the room's queue. What was cancelled behind a dead part comes back as further parts. What may have been
// sent goes out marked. workspace.ErrConflict: nothing of it is.
func (s *Store) Retry(id workspace.OutboundID) (workspace.Outbound, error) {
	var out workspace.Outbound
	err := s.do("retry", func(t *tx) (err error) {
		out, err = t.retry(id, undelivered)
		return err
	})
	return out, err
}

func (t *tx) retry(id workspace.OutboundID, which func(workspace.Part) bool) (workspace.Outbound, error) {
	o, err := t.ageless(id)
	if err != nil {
		return o, err
	}
	dead := -1
	found := false
	for i := range o.Parts {
		p := &o.Parts[i]
		if !which(*p) {
			continue
		}
		found = true
		if p.State == workspace.PartDead && dead < 0 {
			dead = i
		}
		if err := t.lift(p, repeated(*p)); err != nil {
			return o, err
		}
	}
	if !found {
		return o, fmt.Errorf("retry answer %s, of which nothing is undelivered: %w", id, workspace.ErrConflict)
	}
	if dead < 0 {
		return o, nil
	}
	more, err := t.insertParts(o.ID, len(o.Parts), append(make([]Span, len(o.Parts)), behind(o.Parts, dead)...), false)
	o.Parts = append(o.Parts, more...)
	return o, err
}

// behind are the pieces that were cancelled with a dead part and have not come back since.
func behind(parts []workspace.Part, dead int) []Span {
	var out []Span
	for i := dead + 1; i < len(parts); i++ {
		p := parts[i]
		again := p.From == p.To && p.Blob == ""
		for j := range parts {
			q := parts[j]
			again = again || j != i && q.From == p.From && q.To == p.To && q.Blob == p.Blob && (j > i || q.State != workspace.PartCancelled)
		}
		if p.State == workspace.PartCancelled && !again {
			out = append(out, Span{p.From, p.To, p.Blob})
		}
	}
	return out
}

// repeated is the doubt of a part that goes out again: if it may have been sent, it says so. Where only its placeholder may have
// been, it repeats nothing, and the placeholder is still to be edited. Of a dead first part without an id nobody knows any more whether
// it had a placeholder: words of the network stand in place of the doubt.
func repeated(p workspace.Part) workspace.Doubt {
	if p.Doubt == "" && p.State == workspace.PartDead && p.N == 0 && p.RemoteID == "" && p.Blob == "" {
		return workspace.DoubtPlaceholder
	}
	if p.Doubt == "" || p.Doubt == workspace.DoubtPlaceholder {
		return p.Doubt
	}
	return workspace.DoubtMarked
}

// lift takes one part back to ready.
func (t *tx) lift(p *workspace.Part, d workspace.Doubt) error {
	if !workspace.Parts.Can(p.State, workspace.PartReady) {
		return fmt.Errorf("part %s.%d from %s to ready: %w", p.OutboundID, p.N, p.State, workspace.ErrConflict)
	}
	err := t.One("retry a part", `UPDATE parts SET state = 'ready', epoch = ?, tries = 0, next_at = 0, error = ? WHERE outbound_id = ?
		AND n = ? AND state = ?`, t.Epoch, storeDoubt(d, ""), string(p.OutboundID), p.N, string(p.State))
	p.State, p.Epoch, p.Tries, p.Doubt, p.Error = workspace.PartReady, t.Epoch, 0, d, ""
	return err
}

// ageless reads an answer with its parts and takes its age away. Its text is not read.
func (t *tx) ageless(id workspace.OutboundID) (o workspace.Outbound, err error) {
	var created int64
	if err := t.Row(`SELECT id, key, room_id, n, run_id, input_id, on_unknown, reply_to, created, kind, body_ref, state FROM outbound WHERE id = ?`,
		[]any{string(id)}, &o.ID, &o.Key, &o.RoomID, &o.N, &o.RunID, &o.InputID, &o.OnUnknown, &o.ReplyTo, &created, &o.Kind,
		&o.BodyRef, &o.State); err != nil {
		return o, err
	}
	o.Created = fromMillis(created)
	_, check := sealOutbound(o)
	if err := t.One("take an answer's age away", `UPDATE outbound SET not_after = 0, seal = ? WHERE id = ? AND state = 'final'`,
		check, string(id)); err != nil {
		return o, err
	}
	o.Parts, err = t.parts(id)
	return o, err
}

// Drop ends what is undelivered of an answer for good, and returns after the commit. workspace.ErrConflict: nothing of it is.
func (s *Store) Drop(id workspace.OutboundID, why string) error {
	return s.do("drop", func(t *tx) error {
		parts, err := t.parts(id)
		if err != nil {
			return err
		}
		found := false
		for _, p := range parts {
			if !undelivered(p) {
				continue
			}
			found = true
			if p.State == workspace.PartDead { // by the edges that there are
				if err := t.lift(&p, p.Doubt); err != nil {
					return err
				}
			}
			if err := t.One("drop a part", `UPDATE parts SET state = 'cancelled', error = ? WHERE outbound_id = ? AND n = ? AND state = ?`,
				why, string(id), p.N, string(p.State)); err != nil {
				return err
			}
		}
		if !found {
			return fmt.Errorf("drop answer %s, of which nothing is undelivered: %w", id, workspace.ErrConflict)
		}
		return nil
	})
}

// Unpark sends late answers after all; one that is parked no more is passed over.
type Unpark []workspace.OutboundID

func (ids Unpark) apply(t *tx, did *Did) error {
	for _, id := range ids {
		parts, err := t.parts(id)
		if err != nil {
			return err
		}
		any := false
		for _, p := range parts {
			any = any || p.State == workspace.PartParked
		}
		if !any {
			continue
		}
		o, err := t.retry(id, func(p workspace.Part) bool { return p.State == workspace.PartParked })
		if err != nil {
			return err
		}
		did.Late = append(did.Late, o)
	}
	return nil
}
