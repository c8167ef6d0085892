package configs

import (
	"cmp"
	"slices"

	"parley/workspace/lazy"
)

// unread are keys, as paths without numbers, that are accepted and that nothing acts on yet, with what each is for. A block
// stands for all below it. A test holds the table against what the code reads.
var unread = map[string]string{
	"budgets":                    "caps on spending over all agents; nothing is capped",
	"mcp":                        "MCP servers; none is started or asked",
	"hooks":                      "webhooks that start a turn; none has an address",
	"retention":                  "deleting what is old; everything is kept until somebody deletes it",
	"sessions.reset":             "new sessions after a time; a session goes on until somebody begins another",
	"agents[].skills":            "skills; none is loaded",
	"agents[].mcp":               "MCP servers; none is started or asked",
	"agents[].memory":            "notes that an agent takes and recalls; it takes none",
	"agents[].heartbeat":         "a regular look at HEARTBEAT.md; nobody looks",
	"agents[].budget":            "caps on what the agent spends; nothing is capped",
	"agents[].roles.cheap_check": "the first look of a task; there are no tasks",
	"agents[].roles.strong":      "hard questions; the primary model answers all",
	"agents[].roles.escalation":  "what a cheap check hands on; there is none",
	"agents[].roles.coding":      "work on code; the primary model does it",
	"agents[].may.deliver":       "messages of its own; an agent only answers",
	"agents[].may.tasks":         "saved tasks; there are none",
	"agents[].may.ask":           "help of other agents; none is asked",
	"agents[].tools.subagents":   "helpers; there are none",
}

// unreadDoc is said of an unread key before what it is for.
const unreadDoc = "Nothing reads it yet "

// about is what is said of a key, in documents and the schema.
func about(path, doc string) string {
	if what, ok := unread[path]; ok {
		return unreadDoc + "(it is for " + what + "). " + doc
	}
	return doc
}

var itemNumber = lazy.Regexp(`\[[0-9]+\]`)

// unreadHere are warnings for what somebody has written that nothing reads: the file's in its order, then the environment's.
func (r *report) unreadHere() (list []Problem) {
	for path, at := range r.places {
		plain := itemNumber().ReplaceAllString(path, "[]")
		what, ok := unread[plain]
		if !ok && at.env != "" { // a variable names one key of a block
			for block, text := range unread {
				if len(plain) > len(block) && plain[:len(block)] == block && plain[len(block)] == '.' {
					what, ok = text, true
				}
			}
		}
		if ok {
			list = append(list, Problem{Path: path, Line: at.line, Env: at.env, Text: "is accepted, but nothing reads it yet: it is for " + what})
		}
	}
	slices.SortFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
	return list
}
