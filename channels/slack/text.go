package slack

import (
	"context"
	"regexp"
	"strings"
)

// entity is what Slack puts in angle brackets, https://docs.slack.dev/messaging/formatting-message-text.
var entity = regexp.MustCompile(`<([^<>\s][^<>]*)>`)

// plainly undoes the three characters that Slack escapes.
var plainly = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// readText turns Slack's text into what a person reads: names for ids, Markdown for links. A mention of the bot at the
// begin or end is taken out; inside a sentence it stays as its name. Mass mentions become plain words.
func (c *Channel) readText(ctx context.Context, raw string) (text string, mentioned bool) {
	self := c.self.Load()
	const here = "\x00" // where the bot was mentioned; a text of Slack's has none
	raw = strings.ReplaceAll(raw, here, "")
	var b strings.Builder
	last := 0
	for _, at := range entity.FindAllStringIndex(raw, -1) {
		b.WriteString(plainly.Replace(raw[last:at[0]]))
		last = at[1]
		inner := raw[at[0]+1 : at[1]-1]
		target, label, _ := strings.Cut(inner, "|")
		if strings.HasPrefix(target, "@") && self != nil && target[1:] == self.user {
			mentioned = true
			b.WriteString(here)
			continue
		}
		b.WriteString(c.readEntity(ctx, target, label))
	}
	b.WriteString(plainly.Replace(raw[last:]))
	text = b.String()
	if !mentioned {
		return text, false
	}
	for {
		trimmed := strings.TrimSpace(text)
		cut := strings.TrimSuffix(strings.TrimPrefix(trimmed, here), here)
		if cut == trimmed {
			break
		}
		text = cut
	}
	text = strings.TrimLeft(strings.TrimSpace(text), ",: ")
	return strings.ReplaceAll(text, here, "@"+self.name), true
}

func (c *Channel) readEntity(ctx context.Context, target, label string) string {
	label = plainly.Replace(label)
	switch {
	case strings.HasPrefix(target, "@"):
		name := strings.TrimPrefix(label, "@")
		if name == "" {
			name = c.person(ctx, target[1:])
		}
		if name == "" {
			name = target[1:]
		}
		return "@" + name
	case strings.HasPrefix(target, "#"):
		if label == "" {
			label = target[1:]
		}
		return "#" + strings.TrimPrefix(label, "#")
	case strings.HasPrefix(target, "!subteam^"):
		return "@" + strings.TrimPrefix(strings.TrimPrefix(label, "@"), "!")
	case strings.HasPrefix(target, "!date^"):
		return label
	case strings.HasPrefix(target, "!"):
		if label != "" {
			return label
		}
		return "@" + target[1:] // here, channel, everyone
	}
	address := plainly.Replace(target)
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(address, "mailto:"), "https://"), "http://")
	switch {
	case label == "" || label == address:
		return strings.TrimPrefix(address, "mailto:")
	case strings.TrimSuffix(label, "/") == strings.TrimSuffix(bare, "/"):
		return label // Slack made a link of what was typed
	}
	return "[" + label + "](" + address + ")"
}
