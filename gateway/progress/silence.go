package progress

import (
	"time"

	"parley/agentloop/llm"
)

// silence is a model that was asked and sends nothing; the zero value: none does.
type silence struct {
	who   string
	since time.Time
	told  time.Duration // how long it lasted when people were told last
}

// news notes how long it has lasted, and says whether to tell people: after ten seconds, then each time it has lasted half as long again.
func (s *silence) news(now time.Time) bool {
	if s.since.IsZero() {
		return false
	}
	lasted := now.Sub(s.since)
	if lasted < llm.SilentAfter || lasted < s.told+s.told/2 {
		return false
	}
	s.told = lasted
	return true
}

// say is what people are told.
func (s *silence) say() string { return llm.Silence(s.who, s.told) + "; /stop ends this" }
