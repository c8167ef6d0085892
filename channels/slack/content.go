package slack

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/workspace/clip"
)

// sectionMost is how long the text of a section may be, https://docs.slack.dev/reference/block-kit/blocks/section-block.
const sectionMost = 3000

// content is the best form for a text: Slack reads the Markdown itself. With buttons it goes into a block, since
// markdown_text stands alone.
func (c *Channel) content(p channels.Post) ([]slackgo.MsgOption, error) {
	if len(p.Actions) == 0 && !c.legacyServer.Load() {
		return []slackgo.MsgOption{slackgo.MsgOptionMarkdownText(p.Text)}, nil
	}
	return c.inBlocks(p)
}

// inBlocks is a text as blocks, which replace whatever stood there before.
func (c *Channel) inBlocks(p channels.Post) ([]slackgo.MsgOption, error) {
	if c.legacyServer.Load() {
		return older(p)
	}
	blocks, err := blocksOf(p)
	if err != nil {
		return nil, err
	}
	return []slackgo.MsgOption{slackgo.MsgOptionText(notice(p), false), slackgo.MsgOptionBlocks(blocks...)}, nil
}

// notice is what notifications, screen readers and other programs are given of a message in blocks.
func notice(p channels.Post) string {
	text := cmp.Or(p.Plain, p.Text)
	if n := fits(text, noticeMost); n < len(text) {
		return escape(clip.Bytes(text, n)) + "…"
	}
	return escape(text)
}

// fits is how much of a text takes no more than so many bytes once it is escaped; bytes are no fewer than characters.
func fits(text string, most int) int {
	size := 0
	for i, r := range text {
		switch r {
		case '&':
			size += len("&amp;")
		case '<', '>':
			size += len("&lt;")
		default:
			size += utf8.RuneLen(r)
		}
		if size > most {
			return i
		}
	}
	return len(text)
}

// escape keeps Slack from reading anything in a text as its own marks: nobody is rung.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func blocksOf(p channels.Post) ([]slackgo.Block, error) {
	return withButtons([]slackgo.Block{slackgo.NewMarkdownBlock("", p.Text)}, p)
}

// unread says that the Web API does not know Markdown, which came in 2025: an older one, such as a proxy that checks what
// passes. That it takes no markdown_text holds from then on; blocks may be refused for what stands in them.
func (c *Channel) unread(err error) bool {
	if says(err, "no_text") {
		c.legacyServer.Store(true)
		return true
	}
	return says(err, "invalid_blocks")
}

// older is a text in blocks that Slack has had since 2019, without markup.
func older(p channels.Post) ([]slackgo.MsgOption, error) {
	var blocks []slackgo.Block
	text := cmp.Or(p.Plain, p.Text)
	for rest := text; rest != ""; {
		n := fits(rest, sectionMost)
		blocks = append(blocks, slackgo.NewSectionBlock(slackgo.NewTextBlockObject(slackgo.MarkdownType, escape(rest[:n]), false, true), nil, nil))
		rest = rest[n:]
	}
	blocks, err := withButtons(blocks, p)
	if err != nil {
		return nil, err
	}
	return []slackgo.MsgOption{slackgo.MsgOptionText(notice(p), false), slackgo.MsgOptionBlocks(blocks...)}, nil
}

func withButtons(blocks []slackgo.Block, p channels.Post) ([]slackgo.Block, error) {
	for i, row := range p.Actions {
		if len(row) == 0 {
			continue
		}
		var buttons []slackgo.BlockElement
		for j, a := range row {
			if a.Value == "" || len(a.Value) > maxValue {
				return nil, bad("the value of button %q has %d bytes, Slack takes 1 to %d", a.Label, len(a.Value), maxValue)
			}
			id := strconv.Itoa(i) + "." + strconv.Itoa(j)
			buttons = append(buttons, slackgo.NewButtonBlockElement("parley."+id, a.Value, slackgo.NewTextBlockObject(slackgo.PlainTextType, clip.Runes(a.Label, 75), false, false)))
		}
		blocks = append(blocks, slackgo.NewActionBlock("parley."+strconv.Itoa(i), buttons...))
	}
	return blocks, nil
}
