// What people asked to see with an answer: /verbose puts what was done before it, in one line, and /usage what it has
// cost behind it.

package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/workspace"
	"parley/workspace/clip"
)

const (
	maxSteps   = 12  // that a summary names
	maxStepArg = 60  // characters of what a step was called with
	maxStepOut = 100 // … and of its result
)

// stepSummary is what a turn has done so far, in one line; with /verbose full what with and to what end. It is empty where
// nobody asked for it.
func stepSummary(verbose string, journal []workspace.Step) string {
	if verbose != "on" && verbose != "full" {
		return ""
	}
	var list []string
	for _, st := range journal {
		if st.Kind == workspace.StepTool {
			list = append(list, stepLine(st, journal, verbose == "full"))
		}
	}
	if len(list) == 0 {
		return ""
	}
	if more := len(list) - maxSteps; more > 0 {
		list = slices.Insert(slices.Clone(list[more:]), 0, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, " · ")
}

func stepLine(st workspace.Step, journal []workspace.Step, full bool) string {
	s := "`" + st.Tool + "`"
	if arg := callArg(journal, st); full && arg != "" {
		s = "`" + st.Tool + " " + strings.ReplaceAll(clip.Runes(arg, maxStepArg), "`", "'") + "`"
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
		if out := clip.Runes(firstVisible(c.Text), maxStepOut); c.Kind == workspace.ToolResult && out != "" {
			return s + " `" + strings.ReplaceAll(out, "`", "'") + "`"
		}
	}
	return s
}

// callArg is what a call was made with, as the model wrote it.
func callArg(journal []workspace.Step, st workspace.Step) string {
	if args := argsOf(journal, st.CallID); len(args) > 2 {
		return firstVisible(string(args))
	}
	return ""
}

// argsOf are the arguments of a call as the model wrote them.
func argsOf(journal []workspace.Step, call string) []byte {
	for _, st := range journal {
		if st.Kind != workspace.StepModel {
			continue
		}
		for _, c := range st.Body.Content {
			if c.Kind == workspace.ToolCall && c.CallID == call {
				return c.Args
			}
		}
	}
	return nil
}

// firstVisible is the first line of a text, with what is invisible in it shown.
func firstVisible(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return workspace.Visible(s)
}

// usageFooter is the footer of /usage: this answer, and the session up to it.
func usageFooter(mode, model string, answer, before workspace.Usage) string {
	return "_" + usageLine(mode, model, answer) + "; session: " + usageLine(mode, "", before.Add(answer)) + "_"
}

func usageLine(mode, model string, u workspace.Usage) string {
	tokens := fmt.Sprintf("%d in, %d out", u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens)
	cost, more := "no price is known", ""
	if u.CostUSD != nil {
		cost = fmt.Sprintf("$%.4f", *u.CostUSD)
		more = ", " + cost
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
	line := tokens + more
	if model != "" {
		line = model + ": " + line + fmt.Sprintf(", %.1f s", float64(u.DurationMS)/1000)
	}
	return line
}
