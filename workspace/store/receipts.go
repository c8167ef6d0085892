package store

import (
	"context"
	"fmt"
	"strings"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// Receipts are noted beside the database (engine: PostNoted) until they are committed. What is noted is only said of parts
// that are still `sending` at the next start: a process that was killed in between would have to send them once more.

// receiptLines writes down what moves say of sent parts.
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
		if err := b.Exec(ctx, `UPDATE parts SET state = ?, remote_id = ?, remote_sum = ?, error = '' WHERE outbound_id = ? AND n = ? AND state = 'sending' AND epoch < ?`,
			state, remote, engine.Sum(remote), id, n, b.Epoch); err != nil {
			return fmt.Errorf("apply a receipt: %w", err)
		}
		return nil
	})
}
