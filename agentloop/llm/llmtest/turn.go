// Scripts of a turn that calls tools.

package llmtest

import (
	"encoding/json"
	"strings"
)

// Act is a reply that calls a tool with arguments that are texts.
func Act(name string, pairs ...string) Reply {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	args, _ := json.Marshal(m) // texts always marshal
	return Reply{Calls: []Call{{Name: name, Args: string(args)}}}
}

// TurnOf makes the calls one after the other, and then says what they came to.
func TurnOf(calls ...Reply) Script {
	return func(q *Request) Reply {
		if n := q.Round(); n < len(calls) {
			return calls[n]
		}
		var said []string
		for _, m := range q.Chat().Messages {
			switch m.Role {
			case "user":
				said = nil
			case "tool":
				said = append(said, plainResult(m.Text()))
			}
		}
		return Reply{Text: strings.Join(said, " | ")}
	}
}

// plainResult is a result without the marks that say that it is data.
func plainResult(s string) string {
	if first, rest, ok := strings.Cut(s, "\n"); ok && strings.HasPrefix(first, "<outside-text") {
		s = strings.TrimSuffix(rest, "\n</outside-text>")
	}
	return strings.ReplaceAll(s, "\n", "/")
}
