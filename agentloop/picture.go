package agentloop

import (
	"slices"

	"parley/agentloop/llm"
	"parley/workspace"
)

// Pictures and documents are sent again with every call, so that only the newest stay in view. Which ones is decided by
// the numbers that they have in the transcript and by nothing else: the same transcript always gives the same bytes, and
// what is left out changes once in pictureStride new ones, not with each.
const (
	pictureStride = 4        // of earlier turns, at least so many and at most 2*pictureStride-1 are in view
	pastFile      = 2 << 20  // bytes of one that is shown again in later turns
	turnFiles     = 16 << 20 // bytes of all that one turn shows
)

// fileTokens is about what providers count for a document.
func fileTokens(size int64) int { return 1500 + int(size/64) }

// shown says that a model that sees would be shown c.
func shown(c *workspace.Content) bool { return c.Nth > 0 && c.Blob != "" }

// told is c in words, as it stands where it is not shown any more.
func told(c workspace.Content, why string) workspace.Content {
	return workspace.Content{Kind: workspace.Text, Text: c.Text + " (" + why + ")"}
}

// view is which pictures of a transcript are shown again.
type view struct {
	from int // entries before it show none
	cut  int // none up to this number
}

// viewOf looks from the newest picture of earlier turns backwards to the entry since; before it there is none. Numbers only rise; where one does not, counting began
// again, and what stands before is out of view.
func viewOf(history []workspace.Entry, since int, run workspace.RunID) view {
	v, last := view{}, 0
	for i := len(history) - 1; i >= since; i-- {
		e := &history[i]
		if e.Role != workspace.RoleUser || run != "" && e.RunID == run {
			continue
		}
		for j := len(e.Body.Content) - 1; j >= 0; j-- {
			c := &e.Body.Content[j]
			if !shown(c) {
				continue
			}
			switch {
			case last == 0:
				v.cut = max(0, c.Nth/pictureStride-1) * pictureStride
			case c.Nth >= last:
				v.from = i + 1
				return v
			}
			last = c.Nth
		}
	}
	return v
}

// past is an earlier user's message with what is in view of its pictures.
func (v view) past(i int, m llm.Message) llm.Message {
	return retold(m, "it was shown when it came and is no longer in view", func(c *workspace.Content) bool {
		return shown(c) && (i < v.from || c.Nth <= v.cut || c.Size > pastFile)
	})
}

// retold tells what is out of view in words. The message may be the transcript's own: it is not changed.
func retold(m llm.Message, why string, out func(*workspace.Content) bool) llm.Message {
	own := false
	for j := range m.Content {
		if !out(&m.Content[j]) {
			continue
		}
		if !own {
			m.Content, own = slices.Clone(m.Content), true
		}
		m.Content[j] = told(m.Content[j], why)
	}
	return m
}

// present is a message of the turn at hand; used is what the turn shows so far, in bytes.
func present(m llm.Message, used *int64) llm.Message {
	return retold(m, "not shown: too much for one turn", func(c *workspace.Content) bool {
		if !shown(c) {
			return false
		}
		*used += c.Size
		return *used > turnFiles
	})
}

// dim tells of the pictures of this turn instead of showing them. It says whether there were any.
func (c *conversation) dim() (any bool) {
	for i, m := range c.now {
		c.now[i] = retold(m, "not shown: it does not fit", func(c *workspace.Content) bool {
			any = any || shown(c)
			return shown(c)
		})
	}
	return any
}
