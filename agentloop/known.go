package agentloop

import (
	"slices"

	"parley/agentloop/llm"
	"parley/workspace"
)

// Known is what the loop has made of a session's transcript in earlier turns, so that a turn costs what is new and not
// what was ever said. It is kept between the turns of one session and used by one of them at a time; the zero value
// knows nothing. It only helps: with another transcript, or one that was cut, it is as good as none.
type Known struct {
	first *workspace.Entry // of the transcript that it was made of: another array is another transcript
	n     int              // entries that it stands for: whole exchanges without pictures, which come and go from view
	kind  string
	list  []unit
}

// begin is what is known of a history, and the first entry that is not.
func (k *Known) begin(history []workspace.Entry, kind string) (from int, past units) {
	var known []unit
	if k != nil && k.n > 0 && k.n < len(history) && k.first == &history[0] && k.kind == kind {
		from, known = k.n, k.list
	}
	past = units{list: make([]unit, len(known), len(known)+(len(history)-from)/2+1), spare: make([]llm.Message, len(history)-from+2)}
	copy(past.list, known)
	return from, past
}

// keep knows all that came before the turn at hand but for its last exchange, which may yet grow.
func (k *Known) keep(history []workspace.Entry, from int, kind string, past *units) {
	if k == nil || past.last == 0 {
		return
	}
	for i := from; i < past.last; i++ {
		content := history[i].Body.Content
		for j := range content {
			if shown(&content[j]) {
				return
			}
		}
	}
	*k = Known{first: &history[0], n: past.last, kind: kind, list: slices.Clip(past.list[:len(past.list)-1])}
}
