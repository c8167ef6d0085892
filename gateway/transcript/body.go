// What is stored with the entries of a turn.

package transcript

import (
	"parley/agentloop"
	"parley/workspace"
)

// Bodies are the bodies of the entries of a turn's inputs, whose texts stand in the inputs themselves: what others said
// before the first of them, the message that each quotes, and the files that were fetched for it.
func Bodies(said []workspace.ContextLine, inputs []workspace.Input, files map[workspace.InputID][]workspace.Content) []workspace.EntryBody {
	out := make([]workspace.EntryBody, len(inputs))
	for i, in := range inputs {
		if i == 0 {
			out[i].Context = said
		}
		if q := in.Data.Quote; q != nil && q.Text != "" && !q.Own {
			out[i].Context = append(out[i].Context, workspace.ContextLine{Name: q.From.Name, Text: q.Text, Quote: workspace.QuoteOther})
		} else if q != nil && q.Text != "" {
			out[i].Context = append(out[i].Context, workspace.ContextLine{Text: q.Text, Quote: workspace.QuoteOwn})
		}
		out[i].Content = files[in.ID]
	}
	return out
}

// Compaction is the body of the event by which a summary takes the place of older entries.
func Compaction(got agentloop.Compaction) workspace.EntryBody {
	return workspace.EntryBody{Type: workspace.EventCompacted, To: got.To, Reason: got.Model,
		Content: []workspace.Content{{Kind: workspace.Text, Text: got.Summary}}}
}
