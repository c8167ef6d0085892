package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// What people asked to see with an answer: /verbose puts what was done before it, in one line, and /usage what it has
// cost behind it. The transcript holds neither.

// dress adds them to an answer as a room gets it.
func (r *recorder) dress(text string, f *store.Finish) string {
	if steps := r.trail(); steps != "" {
		text = steps + "\n\n" + text
	}
	if bill := r.bill(f); bill != "" {
		text += "\n\n" + bill
	}
	return text
}

const (
	maxTrail    = 12  // steps that a line names
	maxTrailArg = 60  // characters of what a step was called with
	maxTrailOut = 100 // … and of its result
)

// trail is what the turn has done so far, in one line; with /verbose full what with and to what end. It is empty where
// nobody asked for it.
func (r *recorder) trail() string {
	if r.over.Verbose != "on" && r.over.Verbose != "full" {
		return ""
	}
	var list []string
	for _, st := range r.turn.Journal {
		if st.Kind == workspace.StepTool {
			list = append(list, r.stepLine(st))
		}
	}
	if len(list) == 0 {
		return ""
	}
	if more := len(list) - maxTrail; more > 0 {
		list = slices.Insert(slices.Clone(list[more:]), 0, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, " · ")
}

func (r *recorder) stepLine(st workspace.Step) string {
	s := "`" + st.Tool + "`"
	full := r.over.Verbose == "full"
	if arg := callArg(r.turn.Journal, st); full && arg != "" {
		s = "`" + st.Tool + " " + strings.ReplaceAll(clip.Runes(arg, maxTrailArg), "`", "'") + "`"
	}
	switch st.State {
	case workspace.StepPlanned, workspace.StepStarted:
		return s + " …"
	case workspace.StepDone:
		s += " ✓"
	default:
		s += " ✗"
	}
	if !st.Started.IsZero() && !st.Ended.IsZero() {
		if d := st.Ended.Sub(st.Started).Round(100 * time.Millisecond); d >= 100*time.Millisecond {
			s += " " + d.String()
		}
	}
	if !full {
		return s
	}
	for _, c := range st.Body.Content {
		if out := clip.Runes(firstOf(c.Text), maxTrailOut); c.Kind == workspace.ToolResult && out != "" {
			return s + " `" + strings.ReplaceAll(out, "`", "'") + "`"
		}
	}
	return s
}

// callArg is what a call was made with, as the model wrote it.
func callArg(journal []workspace.Step, st workspace.Step) string {
	for _, m := range journal {
		if m.Kind != workspace.StepModel {
			continue
		}
		for _, c := range m.Body.Content {
			if c.Kind == workspace.ToolCall && c.CallID == st.CallID && len(c.Args) > 2 {
				return firstOf(string(c.Args))
			}
		}
	}
	return ""
}

func firstOf(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return workspace.Visible(s)
}

// bill is the footer of /usage: this answer, and the session up to it.
func (r *recorder) bill(f *store.Finish) string {
	mode := r.over.Usage
	if mode == "" || mode == "off" || f.Usage.Calls == 0 {
		return ""
	}
	sum, _, err := r.ts.store.SessionUsage(r.run.SessionID, 0)
	if err != nil {
		r.ts.log.Error("usage of the session cannot be read", "session", r.key.String(), "err", err)
		return ""
	}
	return "_" + usageLine(mode, f.Model, f.Usage) + "; session: " + usageLine(mode, "", sum.Add(f.Usage)) + "_"
}

func usageLine(mode, model string, u workspace.Usage) string {
	tokens := fmt.Sprintf("%d in, %d out", u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens)
	cost := "unpriced"
	if u.CostUSD != nil {
		cost = fmt.Sprintf("$%.4f", *u.CostUSD)
	}
	switch mode {
	case "tokens":
		return tokens
	case "cost":
		return cost
	}
	if u.CacheReadTokens+u.CacheWriteTokens > 0 {
		tokens += fmt.Sprintf(" (cache %d read, %d written)", u.CacheReadTokens, u.CacheWriteTokens)
	}
	line := tokens + ", " + cost
	if model != "" {
		line = model + ": " + line + fmt.Sprintf(", %.1f s", float64(u.DurationMS)/1000)
	}
	return line
}
