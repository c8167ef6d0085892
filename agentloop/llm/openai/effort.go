package openai

import (
	"parley/agentloop/llm"
	"parley/workspace/lazy"
)

// effort is the value of reasoning_effort for a level, as near as the server has one; empty: none is sent.
// https://platform.openai.com/docs/api-reference/chat/create#chat-create-reasoning_effort
func (q quirk) effort(level string) string {
	if q&noEffort != 0 {
		return ""
	}
	if level == "off" {
		level = "none"
	}
	if level == "none" && q&noNone != 0 {
		level = "minimal"
	}
	if level == "minimal" && q&noMinimal != 0 {
		level = "low"
	}
	if level == "xhigh" && q&noXhigh != 0 {
		level = "high"
	}
	return level
}

// lessEffort is what is learnt from a refusal of the value that was sent, or of the field itself.
func (q quirk) lessEffort(sent string, field bool) quirk {
	unknown := map[string]quirk{"none": noNone, "minimal": noMinimal, "xhigh": noXhigh}[sent]
	if field || unknown == 0 {
		return q | noEffort
	}
	return q | unknown
}

var (
	thinkers = lazy.Regexp(`(?i)(^|/)(o[1-9]|gpt-[5-9]|gpt-oss|deepseek-r|qwq|grok-[34]-mini|magistral)`)
	plain    = lazy.Regexp(`(?i)(^|/)(gpt-4|gpt-3|chatgpt-|text-|davinci)`)
)

// thinks is what the model's name and its server's refusals tell.
func (m *Model) thinks() llm.Knowledge {
	switch {
	case quirk(m.learned.Load())&noEffort != 0 || plain().MatchString(m.o.Model):
		return llm.No
	case thinkers().MatchString(m.o.Model):
		return llm.Yes
	}
	return llm.Unknown
}
