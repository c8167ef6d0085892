package transcript

import "parley/workspace"

// Summary stands for the part of a transcript that the prompt does not hold. The zero value stands for nothing.
type Summary struct {
	Text string
	To   int64 // the newest entry that it stands for
}

// Keep leaves out what the summary stands for, and what was undone.
func (s Summary) Keep(list []workspace.Entry) []workspace.Entry {
	undone := Undone(list)
	kept := list[:0:0]
	for _, e := range list {
		if e.N > s.To && !undone(e.N) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Undone says which entries the events of a transcript leave out of the prompt.
func Undone(list []workspace.Entry) func(n int64) bool {
	type span struct{ from, to int64 }
	var spans []span
	for _, e := range list {
		if e.Role == workspace.RoleEvent && e.Body.Type == workspace.EventUndone {
			spans = append(spans, span{e.Body.From, e.Body.To})
		}
	}
	return func(n int64) bool {
		for _, s := range spans {
			if n >= s.from && n <= s.to {
				return true
			}
		}
		return false
	}
}
