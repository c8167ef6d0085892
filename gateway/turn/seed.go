// What was said in a thread before its session began.

package turn

import (
	"context"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/clip"
)

// A thread's session begins in the middle of a conversation: its first turn quotes how the thread began and what was
// said last. What is quoted is stored with that turn, so that it is asked for once.
const (
	seedLines  = 20              // the last so many, beside the root
	seedChars  = 2000            // of one of them
	seedWithin = 5 * time.Second // then the turn begins without
)

// seed is what was said in a thread before its first turn; nil where nothing is to be asked, or could be learnt. What
// others said there and the journal knows is among it.
func (ts *Turns) seed(ctx context.Context, key workspace.Key, inputs []workspace.Input) []workspace.ContextLine {
	addr, err := ts.Delivery.Address(inputs[0].RoomID)
	if err != nil || addr.Thread == "" {
		return nil
	}
	c := ts.Channels.Find(addr)
	historian, ok := c.Historian(addr)
	if !ok {
		return nil
	}
	if first, err := ts.Transcripts.Fresh(key); err != nil || !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, seedWithin)
	defer cancel()
	past, err := historian.History(ctx, addr, seedLines)
	if err != nil {
		c.Log.Warn("thread history cannot be read", "session", key.String(), "err", err)
		return nil
	}
	asked := map[channels.MessageID]bool{}
	for _, in := range inputs {
		asked[in.Data.Message] = true
	}
	var lines []workspace.ContextLine
	for _, in := range past {
		if text := clip.Runes(in.Text, seedChars); text != "" && !asked[in.ID] {
			lines = append(lines, workspace.ContextLine{Name: in.From.Name, Text: text})
		}
	}
	return lines
}
