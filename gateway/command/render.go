package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/control/conversation"
	"parley/gateway/control/file"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/workspace"
	"parley/workspace/clip"
)

// Render writes the chat's reply to a verb's value, in Markdown.
func Render(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case conversation.Status:
		return renderStatus(v)
	case person.Who:
		return renderWho(v)
	case conversation.Fresh:
		return renderFresh(v)
	case conversation.Setting:
		return renderSetting(v)
	case conversation.ModelView:
		return renderModels(v)
	case conversation.Compacted:
		return renderCompacted(v)
	case conversation.Undone:
		return renderUndone(v)
	case conversation.Composed:
		return renderContext(v)
	case approval.Approval:
		return renderApproval(v)
	case run.StoppedAll:
		return renderStoppedAll(v)
	case run.Stopped:
		return renderStopped(v)
	case run.Why:
		return renderWhy(v)
	case conversation.QueueView:
		return renderQueue(v)
	case person.LinkCode:
		return fmt.Sprintf("Your code is **%s**. Send me `/link %s` where you want to be known as the same person. It works once, for %d minutes.", v.Code, v.Code, v.Minutes)
	case person.LinkView:
		return renderLink(v)
	case file.Filled:
		return renderFiles(v)
	case file.Removed:
		return renderRemoved(v)
	case conversation.Resumed:
		switch {
		case v.Messages == 0 && v.Answers == 0:
			return "Nothing is waiting here from while I was away."
		case v.Answers == 0:
			return fmt.Sprintf("I answer %s now.", control.Plural(v.Messages, "message"))
		case v.Messages == 0:
			return fmt.Sprintf("I send %s now.", control.Plural(v.Answers, "late answer"))
		}
		return fmt.Sprintf("I send %s and answer %s now.", control.Plural(v.Answers, "late answer"), control.Plural(v.Messages, "message"))
	}
	return "Done."
}

func renderStatus(v conversation.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** in session `%s`, generation %d, %s\n", v.Agent.Name, v.Session, max(v.Gen, 1), control.Plural(v.Entries, "line"))
	switch {
	case v.Asleep && v.Waiting > 0:
		fmt.Fprintf(&b, "- a turn is suspended: %s; %s behind it\n", v.Held, control.Plural(v.Waiting, "message"))
	case v.Asleep:
		fmt.Fprintf(&b, "- a turn is suspended: %s\n", v.Held)
	case v.Held != "":
		fmt.Fprintf(&b, "- a turn waits: %s\n", v.Held)
	case v.Running && v.Waiting > 0:
		fmt.Fprintf(&b, "- a turn is running, %s behind it\n", control.Plural(v.Waiting, "message"))
	case v.Running:
		b.WriteString("- a turn is running\n")
	default:
		b.WriteString("- idle\n")
	}
	chain := v.Chain
	if len(chain) == 0 {
		chain = v.Agent.Models
	}
	for i, name := range chain {
		state := "ok"
		for _, m := range v.Models {
			if m.Name == name {
				state = modelState(m)
			}
		}
		kind := "model"
		if i > 0 {
			kind = "fallback"
		}
		fmt.Fprintf(&b, "- %s `%s`: %s\n", kind, name, state)
	}
	fmt.Fprintf(&b, "- queue mode %s\n", v.Queue.Mode)
	if o := overrides(v.Overrides); o != "" {
		fmt.Fprintf(&b, "- changed for this session: %s\n", o)
	}
	if v.Activation != "" {
		fmt.Fprintf(&b, "- changed for this group: activation %s\n", v.Activation)
	}
	if v.Switched {
		b.WriteString("- this chat was switched here: /session switch main leads back\n")
	}
	if v.Compacted {
		b.WriteString("- the older part of the conversation is a summary\n")
	}
	if v.Usage.Calls > 0 {
		fmt.Fprintf(&b, "- this session: %s\n", control.UsageOf(v.Usage).Text())
	}
	if r := v.Last; r != nil && r.State.Live() && r.Trouble != nil {
		fmt.Fprintf(&b, "- its model fails: %s\n", llm.Problem(*r.Trouble))
	}
	if v.Last != nil {
		fmt.Fprintf(&b, "- last run %s: %s, %d tokens in, %d out, %s\n", workspace.Short(v.Last.ID), v.Last.State, v.Last.Usage.InputTokens+v.Last.Usage.CacheReadTokens,
			v.Last.Usage.OutputTokens, control.Cost(v.Last.Usage.CostUSD))
	}
	for _, ch := range v.Channels {
		fmt.Fprintf(&b, "- channel %s (%s): %s", ch.Name, ch.Network, ch.State)
		if ch.State != channels.Ready && ch.Hint != "" {
			b.WriteString(". " + ch.Hint)
		}
		b.WriteByte('\n')
	}
	if c := v.Config; c.Problem != "" {
		fmt.Fprintf(&b, "- the configuration file has an error: %s. The former configuration is in force since %s\n", c.Problem, c.Since.UTC().Format("2006-01-02 15:04 UTC"))
	} else if len(c.Waits) > 0 {
		fmt.Fprintf(&b, "- changes that wait for a restart: %s\n", strings.Join(c.Waits, ", "))
	}
	fmt.Fprintf(&b, "- up for %s, store %s", v.Uptime.Round(time.Second), v.Health)
	if v.Reason != "" {
		b.WriteString(": " + v.Reason)
	}
	return b.String()
}

func modelState(m llm.ModelHealth) string {
	switch {
	case m.Offline:
		return "offline responder, no model"
	case m.Down && m.LastError == "":
		return "cooling down"
	case m.Down:
		return "cooling down: " + m.LastError
	case m.LastError != "":
		return "last error: " + m.LastError
	}
	return "ok"
}

func overrides(o workspace.Overrides) string {
	var list []string
	most := ""
	if o.Cap > 0 {
		most = strconv.Itoa(o.Cap)
	}
	for _, x := range [][2]string{{"queue", o.Queue}, {"debounce", o.Debounce}, {"cap", most}, {"drop", o.Drop}, {"model", o.Model}, {"think", o.Think},
		{"verbose", o.Verbose}, {"reasoning", o.Reasoning}, {"usage", o.Usage}, {"send", o.Send}} {
		if x[1] != "" {
			list = append(list, x[0]+" "+x[1])
		}
	}
	return strings.Join(list, ", ")
}

func renderWho(v person.Who) string {
	name := v.Name
	if name == "" {
		name = "no name"
	}
	s := fmt.Sprintf("You are `%s` (%s), role **%s**.", v.Person, name, v.Role)
	if v.User != "" {
		s += fmt.Sprintf("\n- on %s you are user `%s`", v.Network, v.User)
	}
	return s + fmt.Sprintf("\n- this session is `%s`, answered by %s", v.Session, v.Agent.Name)
}

func renderStopped(v run.Stopped) string {
	var list []string
	if v.Run != "" {
		list = append(list, "run "+workspace.Short(v.Run))
	}
	if v.Summary {
		list = append(list, "the summary")
	}
	if v.Queued > 0 {
		list = append(list, control.Plural(v.Queued, "waiting message"))
	}
	if v.Parts > 0 {
		list = append(list, control.Plural(v.Parts, "unsent part"))
	}
	if len(list) == 0 {
		return "Nothing is running here."
	}
	return "Stopped: " + strings.Join(list, ", ") + "."
}

func renderWhy(v run.Why) string {
	if v.Input == nil {
		return "I have answered nothing here yet."
	}
	var b strings.Builder
	d, r := v.Input.Decision, v.Input.Binding
	if v.Run != nil {
		verb := "ended"
		if v.Run.State.Live() {
			verb = "is"
		}
		fmt.Fprintf(&b, "Run %s %s %s", workspace.Short(v.Run.ID), verb, v.Run.State)
		if v.Run.Reason != "" {
			fmt.Fprintf(&b, " (%s)", v.Run.Reason)
		}
		b.WriteString(".\n")
		if t := v.Run.Trouble; t != nil {
			fmt.Fprintf(&b, "- its model failed: %s\n", llm.Problem(*t))
		}
	}
	fmt.Fprintf(&b, "- you may speak here by rule `%s`", d.Rule)
	if len(d.Gates) > 0 {
		fmt.Fprintf(&b, ", having passed %s", strings.Join(d.Gates, ", "))
	}
	fallback := ""
	if r.Fallback {
		fallback = ", as a fallback: no route names this place"
	}
	fmt.Fprintf(&b, "\n- agent `%s` by route `%s`%s\n- session `%s`, rights of %s", r.Agent, r.Rule, fallback, r.Key, v.Input.Role)
	if v.Run != nil && v.Run.Model != "" {
		fmt.Fprintf(&b, "\n- model `%s`, %d tokens in, %d out, %s", v.Run.Model, v.Run.Usage.InputTokens+v.Run.Usage.CacheReadTokens, v.Run.Usage.OutputTokens, control.Cost(v.Run.Usage.CostUSD))
	}
	for _, ap := range v.Approvals {
		fmt.Fprintf(&b, "\n- approval %s of `%s`: %s", workspace.Short(ap.ID), workspace.Line(ap.Tool, 40), approvalTold(ap))
	}
	for _, st := range v.Steps {
		if st.Kind == workspace.StepTool {
			fmt.Fprintf(&b, "\n- tool `%s`: %s%s", workspace.Line(st.Tool, 40), st.State, whyTool(st.Body))
		}
	}
	return b.String()
}

// whyTool is what policy said of a call: the layer that decided first, then what all said.
func whyTool(b workspace.StepBody) string {
	d := b.Decision
	if d == nil {
		if b.Reason == "" {
			return ""
		}
		return ", " + b.Reason
	}
	s := ", " + control.PolicyOutcome(*d) + " by " + d.Layer + " `" + d.Rule + "`"
	if d.Domain != "" {
		s += ", domain `" + d.Domain + "`"
	}
	if b.Reason != "" && b.Reason != d.Layer+": "+d.Rule {
		s += ", " + b.Reason
	}
	var steps []string
	for _, l := range d.Record {
		steps = append(steps, fmt.Sprintf("%s %s (%s)", l.Layer, l.Outcome, l.Rule))
	}
	if len(steps) > 0 {
		s += ": " + strings.Join(steps, " → ")
	}
	return s
}

func renderQueue(v conversation.QueueView) string {
	head := "Queue mode is"
	if v.Changed {
		head = "Queue mode is now"
	}
	s := fmt.Sprintf("%s **%s**: at most %d wait, beyond that %s; what comes within %s joins the message before.", head, v.Mode, v.Cap, overflowText(v.Overflow), v.Debounce)
	if v.Held != "" { // what it was asked with is taken out of the queue
		s += "\nThe turn has not begun, or is suspended: " + v.Held + "."
	}
	if len(v.Waiting) == 0 {
		return s + "\nNothing waits."
	}
	s += fmt.Sprintf("\n%s:", control.Plural(len(v.Waiting), "message"))
	for _, w := range v.Waiting {
		line, _, _ := strings.Cut(w, "\n")
		s += "\n- " + clip.Runes(line, 61)
	}
	return s
}

func overflowText(mode string) string {
	switch mode {
	case "old":
		return "the oldest is dropped"
	case "new":
		return "the newest is dropped"
	}
	return "a line of each is kept"
}
