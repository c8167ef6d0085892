// What chats are told of settings, models and prompts.

package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/agentloop/llm"
	"parley/gateway/control"
	"parley/gateway/control/conversation"
)

func renderSetting(v conversation.Setting) string {
	value := v.Value
	names := map[string]string{"verbose": "off", "reasoning": "off", "usage": "off", "send": "inherit: answers are sent", "activation": "as configured", "think": "the model's own"}
	if value == "" {
		value = names[v.Name]
	}
	is := "is"
	if v.Changed {
		is = "is now"
	}
	s := fmt.Sprintf("%s %s **%s**.", strings.ToUpper(v.Name[:1])+v.Name[1:], is, value)
	if more := settingMeans(v); more != "" {
		s += " " + more
	}
	if v.Note != "" {
		s += "\n" + v.Note
	}
	if v.Usage != nil && !v.Changed {
		s += "\nThis session so far: " + control.UsageOf(*v.Usage).Text() + "."
	}
	return s
}

// settingMeans is what follows from a value, where its word does not say it.
func settingMeans(v conversation.Setting) string {
	switch v.Name + " " + v.Value {
	case "verbose on":
		return "Each answer begins with the tools that I used, in one line that grows while I work."
	case "verbose full":
		return "Each answer begins with the tools that I used, what with and to what end."
	case "reasoning on":
		return "You see that the model thinks. What it thinks stays private: it never leaves the gateway."
	case "reasoning ":
		return "What a model thinks stays private either way; on shows only that it does."
	case "send off":
		return "Answers stay in the transcript; commands are still answered here."
	case "activation always":
		return "I answer every message here."
	case "activation mention":
		return "I answer here when I am mentioned or answered to."
	}
	return ""
}

func renderModels(v conversation.ModelView) string {
	var b strings.Builder
	switch {
	case v.Changed:
		fmt.Fprintf(&b, "From now on this session asks **%s**.", v.Chain[0])
		if len(v.Chain) > 1 {
			fmt.Fprintf(&b, " If it does not answer: %s.", strings.Join(v.Chain[1:], ", "))
		}
		return b.String()
	case v.Gone:
		fmt.Fprintf(&b, "The model `%s`, which was chosen here, is not configured any more; I ask the agent's own.\n", v.Override)
	}
	for _, m := range v.Choices {
		mark := ""
		if m.Current {
			mark = " ← in use"
		}
		if m.Default {
			mark += " (default)"
		}
		fmt.Fprintf(&b, "%d. **%s**%s", m.N, m.Name, mark)
		if v.Detailed {
			b.WriteString(modelDetail(m))
		} else if m.Down {
			b.WriteString(", cooling down")
		}
		b.WriteByte('\n')
	}
	b.WriteString("/model and a number or name chooses; /model default goes back.")
	return b.String()
}

func modelDetail(m conversation.ModelChoice) string {
	var list []string
	if m.Model != "" && m.Model != m.Name {
		list = append(list, "`"+m.Model+"`")
	}
	if m.Window > 0 {
		list = append(list, fmt.Sprintf("window of %d tokens", m.Window))
	}
	switch {
	case m.Offline:
		list = append(list, "no model at all: the built-in responder")
	case m.Thinks == llm.Yes:
		list = append(list, "can be told how hard to think")
	case m.Thinks == llm.No:
		list = append(list, "cannot be told how hard to think")
	}
	switch {
	case m.Down && m.Error != "":
		list = append(list, "cooling down: "+m.Error)
	case m.Down:
		list = append(list, "cooling down")
	case m.Error != "":
		list = append(list, "last error: "+m.Error)
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

func renderFresh(v conversation.Fresh) string {
	s := "A fresh session begins"
	if v.Model != "" {
		s += " with the model **" + v.Model + "**"
	}
	s += ". What was said before is kept, but I no longer see it."
	if o := overrides(v.Overrides); o != "" {
		s += " Settings stay: " + o + "."
	}
	return s
}

func renderCompacted(v conversation.Compacted) string {
	return fmt.Sprintf("I summed up %s: about %d tokens are now %d. The record stays as it was. (`%s`: %s)", control.Plural(v.Turns, "exchange"), v.Before, v.After,
		v.Model, control.UsageOf(v.Usage).Text())
}

func renderUndone(v conversation.Undone) string {
	if v.Again {
		return fmt.Sprintf("I answer “%s” again.", v.Said)
	}
	return fmt.Sprintf("“%s” and my answer are out of what I see. The record keeps them.", v.Said)
}

func renderContext(v conversation.Composed) string {
	if v.Form == "json" {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return "It cannot be written as JSON."
		}
		return "```json\n" + string(b) + "\n```"
	}
	var b strings.Builder
	share := 0
	if v.Window > 0 {
		share = 100 * v.Used() / v.Window
	}
	fmt.Fprintf(&b, "The next prompt to `%s` is about **%d tokens**, %d %% of its window of %d; %d are kept for the answer. (Estimates: four bytes a token.)\n",
		v.Model, v.Used(), share, v.Window, v.Output)
	fmt.Fprintf(&b, "- who I am, with my files: %d\n- tools: %d in %d\n- date, place, person: %d\n", v.System, len(v.Schemas), v.Tools, v.Volatile)
	if v.Summary > 0 {
		fmt.Fprintf(&b, "- summary of what was said earlier: %d\n", v.Summary)
	}
	fmt.Fprintf(&b, "- conversation: %s in %d", control.Plural(v.Messages, "message"), v.History)
	if v.Free() < 0 {
		b.WriteString("\nThat is too long: the older part is summed up, or left out. /compact does it now.")
	}
	if v.Form != "detail" {
		return b.String()
	}
	b.WriteString("\n\n**Files**")
	for _, f := range v.Files {
		fmt.Fprintf(&b, "\n- `%s`: %d", f.Name, f.Tokens)
		if f.Note != "" {
			b.WriteString(" (" + f.Note + ")")
		}
	}
	b.WriteString("\n\n**Tools**")
	for _, t := range v.Schemas {
		fmt.Fprintf(&b, "\n- `%s`: %d", t.Name, t.Tokens)
	}
	b.WriteString("\n\n**Conversation**")
	for _, role := range []string{"user", "assistant", "tool"} {
		fmt.Fprintf(&b, "\n- %s: %d", role, v.Roles[role])
	}
	return b.String()
}
