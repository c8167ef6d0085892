package agentloop

import (
	"crypto/sha256"
	"encoding/hex"

	"parley/agentloop/llm"
	"parley/workspace"
)

// What the model says and what tools return is freed of secrets here, before anything else has it: the journal, the
// transcript, watchers, the next prompt. A secret that a model knows all the same can so not get into a tool's
// arguments either.

// freed is what people and the model may read of what a tool returns, or a command writes.
func (l *Loop) freed(text string) string { return workspace.Visible(l.Hide.Redact(text)) }

// hideResponse changes a response in place.
func (l *Loop) hideResponse(resp *llm.Response) {
	for i := range resp.Content {
		c := &resp.Content[i]
		c.Text, c.Name, c.Args = l.Hide.Redact(c.Text), l.Hide.Redact(c.Name), l.Hide.Args(c.Args)
		if l.Hide.Redact(c.CallID) != c.CallID { // results are found by it
			sum := sha256.Sum256([]byte(c.CallID))
			c.CallID = "call_" + hex.EncodeToString(sum[:12])
		}
		if opaque := l.Hide.JSON(c.Opaque); string(opaque) != string(c.Opaque) {
			c.Opaque = nil // signed: changed it would be refused
		}
	}
}

// hideFiles takes secrets out of the names of files that a tool returns.
func (l *Loop) hideFiles(list []workspace.Content) []workspace.Content {
	for i := range list {
		list[i].Name, list[i].Text = l.Hide.Redact(list[i].Name), l.Hide.Redact(list[i].Text)
	}
	return list
}
