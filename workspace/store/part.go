// Parts, the network messages of an outbound, and receipts of them.

package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

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

func (t *tx) parts(id workspace.OutboundID) ([]workspace.Part, error) {
	var out []workspace.Part
	err := t.Rows(`SELECT `+partColumns+` FROM parts WHERE outbound_id = ? ORDER BY n`,
		[]any{string(id)}, func(scan func(...any) error) error {
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
	p.Doubt, p.Error = doubtOf(p.State, p.Error)
	return p, err
}

// Move is one edge of a part. What is in sending moves only in the process that began it; a part that an earlier
// boot left there must become unknown first.
type Move struct {
	Part   workspace.Part // OutboundID and N name it
	To     workspace.PartState
	Remote channels.MessageID
	Doubt  workspace.Doubt
	Error  string // for people; not kept beside a doubt that has a sentence of its own
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
			err = t.One("begin to send", `UPDATE parts SET state = 'sending', epoch = ?, tries = tries + 1, next_at = 0 WHERE outbound_id = ?
				AND n = ? AND state = 'ready' AND epoch <= ?`, t.Epoch, string(m.Part.OutboundID), m.Part.N, t.Epoch)
		case workspace.PartUnknown:
			err = t.One("give up knowing", `UPDATE parts SET state = 'unknown', epoch = ?, error = ? WHERE outbound_id = ? AND n = ?
				AND state = 'sending' AND epoch <= ?`, t.Epoch, storeDoubt(m.Doubt, m.Error), string(m.Part.OutboundID), m.Part.N, t.Epoch)
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
				WHERE outbound_id = ? AND n = ? AND state IN (`+from+`) AND (state <> 'sending' OR epoch = ?)`, string(m.To), string(m.Remote),
				string(m.Remote), string(m.Remote), engine.Sum(string(m.Remote)), storeDoubt(m.Doubt, m.Error), millis(m.NextAt),
				string(m.Part.OutboundID), m.Part.N, t.Epoch)
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
		if _, err := t.Exec(`UPDATE parts SET state = 'cancelled' WHERE outbound_id = ? AND n > ? AND `+openPart+`
			AND state IN ('ready', 'parked')`, string(m.Part.OutboundID), m.Part.N); err != nil {
			return err
		}
		if notice == nil {
			return nil
		}
		return t.outbounds([]NewOutbound{*notice}, &out)
	})
	return out, err
}

// receiptLines are what moves say of sent parts. They are noted beside the database until the receipts are committed, since a
// process that is killed in between would have to send the parts once more.
func receiptLines(moves []Move) string {
	var b strings.Builder
	for _, m := range moves {
		if (m.To == workspace.PartSent || m.To == workspace.PartLive) && m.Remote != "" {
			fmt.Fprintf(&b, "%s %d %s %q\n", m.Part.OutboundID, m.Part.N, m.To, string(m.Remote))
		}
	}
	return b.String()
}

// replayReceipts applies what is noted to parts that an earlier process was sending.
func replayReceipts(ctx context.Context, b *engine.Boot) error {
	return b.Notes(func(line string) error {
		var id, state, remote string
		var n int
		if _, err := fmt.Sscanf(line, "%s %d %s %q", &id, &n, &state, &remote); err != nil {
			return nil // the last line of a process that was killed while it wrote
		}
		if state != string(workspace.PartSent) && state != string(workspace.PartLive) {
			return nil
		}
		if err := b.Exec(ctx, `UPDATE parts SET state = ?, remote_id = ?, remote_sum = ?, error = '' WHERE outbound_id = ? AND n = ?
			AND state = 'sending' AND epoch < ?`, state, remote, engine.Sum(remote), id, n, b.Epoch); err != nil {
			return fmt.Errorf("apply a receipt: %w", err)
		}
		return nil
	})
}

func sealPart(p workspace.Part) int64 {
	return engine.Seal(string(p.OutboundID), p.N, p.Token, p.From, p.To, p.Blob)
}
