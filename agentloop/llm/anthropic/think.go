package anthropic

import (
	"strconv"

	"parley/agentloop/llm"
	"parley/workspace/lazy"
)

// How hard to think: newer models take a word and decide for themselves, older ones a number of tokens of at least 1,024
// that counts towards max_tokens.
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking and …/adaptive-thinking
var (
	adaptiveModel = lazy.Regexp(`claude-(opus|sonnet)-4-[6-9]|claude-[a-z]+-[5-9]`)
	knownModel    = lazy.Regexp(`claude-(3-7|[a-z]+-4)`)
	plainModel    = lazy.Regexp(`claude-(3-(haiku|sonnet|opus|5)|2|instant)`)
)

const minBudget = 1024

// budget is the tokens of a level; 0: no thinking.
func budget(level string) int {
	return map[string]int{"minimal": minBudget, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768}[level]
}

// quirks are what is known of the model before it is asked.
func (m *Model) quirks() quirk {
	q := quirk(m.learned.Load())
	if adaptiveModel().MatchString(m.o.Model) {
		q |= adaptive
	}
	if plainModel().MatchString(m.o.Model) {
		q |= noThinking
	}
	return q
}

// thinking is the field for a level, with the max_tokens that leaves room for the answer as well.
func (m *Model) thinking(level string, q quirk, most int) (field string, limit int) {
	switch {
	case level == "" || q&noThinking != 0:
		return "", most
	case level == "off":
		return `,"thinking":{"type":"disabled"}`, most
	case q&adaptive != 0:
		if level == "minimal" {
			level = "low"
		}
		if level == "xhigh" && q&noXhigh != 0 {
			level = "high"
		}
		return `,"thinking":{"type":"adaptive"},"output_config":{"effort":"` + level + `"}`, most
	}
	n := budget(level)
	limit = most + n
	if server := int(m.limit.Load()); server > 0 && limit > server {
		limit = server
		n = min(n, limit-minBudget)
	}
	if n < minBudget {
		return "", most
	}
	return `,"thinking":{"type":"enabled","budget_tokens":` + strconv.Itoa(n) + `}`, limit
}

// thinks is what the model's name and its server's refusals tell.
func (m *Model) thinks() llm.Knowledge {
	switch q := m.quirks(); {
	case q&noThinking != 0:
		return llm.No
	case q&adaptive != 0 || knownModel().MatchString(m.o.Model):
		return llm.Yes
	}
	return llm.Unknown
}
