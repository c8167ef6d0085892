package slacktest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of https://docs.slack.dev/reference/block-kit, in characters or items.
const (
	maxBlocks   = 50
	maxSection  = 3000
	maxMarkdown = 12000 // also of markdown_text
	maxHeader   = 150
	maxElements = 25 // of an actions block
	maxContext  = 10
	maxFields   = 10
	maxField    = 2000
	maxButton   = 75
	maxValue    = 2000
	maxID       = 255
	maxRows     = 100 // of a table
	maxColumns  = 20

	// All blocks together: no document gives the number. Slack's answer in slackapi/bolt-js#2867 speaks of 12,000
	// characters "with a buffer for block containers"; 9,597 characters in 50 blocks were taken there and 11,341 in 45
	// refused. This sum agrees with both.
	maxTogether = 13200
	perBlock    = 48
)

type block struct {
	Type     string            `json:"type"`
	BlockID  string            `json:"block_id"`
	Text     json.RawMessage   `json:"text"` // an object; of a markdown block a string
	Fields   []textObject      `json:"fields"`
	Elements []json.RawMessage `json:"elements"`
	ImageURL string            `json:"image_url"`
	AltText  string            `json:"alt_text"`
	Rows     []json.RawMessage `json:"rows"`
}

type textObject struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type element struct {
	Type     string          `json:"type"`
	ActionID string          `json:"action_id"`
	Text     json.RawMessage `json:"text"`
	Value    string          `json:"value"`
	URL      string          `json:"url"`
	Elements []element       `json:"elements"`
	Style    json.RawMessage `json:"style"`
}

// Button is a button of a message.
type Button struct {
	ActionID, BlockID, Text, Value string
}

// checkBlocks refuses what Slack refuses.
func checkBlocks(raw string) (json.RawMessage, *failure) {
	var list []block
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, fail("invalid_blocks_format")
	}
	if len(list) == 0 {
		return nil, nil
	}
	var errs []string
	bad := func(at, format string, args ...any) {
		errs = append(errs, fmt.Sprintf(format, args...)+" [json-pointer:/blocks"+at+"]")
	}
	if len(list) > maxBlocks {
		bad("", "no more than %d items allowed", maxBlocks)
	}
	ids := map[string]bool{}
	markdown, together := 0, 0
	for i, b := range list {
		at := fmt.Sprintf("/%d", i)
		if runes(b.BlockID) > maxID {
			bad(at+"/block_id", "must be less than %d characters", maxID+1)
		}
		if b.BlockID != "" && ids[b.BlockID] {
			bad(at+"/block_id", "block_id %q already exists", b.BlockID)
		}
		ids[b.BlockID] = true
		b.check(func(sub, format string, args ...any) { bad(at+sub, format, args...) })
		n := runes(strings.Join(b.texts(), ""))
		if b.Type == "markdown" {
			markdown += n
		}
		together += n + perBlock
	}
	switch {
	case len(errs) > 0:
		return nil, fail("invalid_blocks", errs...)
	case markdown > maxMarkdown, together > maxTogether:
		return nil, fail("msg_blocks_too_long")
	}
	return json.RawMessage(raw), nil
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// check looks at one block.
func (b block) check(bad func(at, format string, args ...any)) {
	switch b.Type {
	case "section":
		if len(b.Text) == 0 && len(b.Fields) == 0 {
			bad("", "missing required field: text or fields")
		}
		if len(b.Text) > 0 {
			checkText(b.Text, "/text", maxSection, false, bad)
		}
		if len(b.Fields) > maxFields {
			bad("/fields", "no more than %d items allowed", maxFields)
		}
		for i, f := range b.Fields {
			if n := runes(f.Text); n == 0 || n > maxField {
				bad(fmt.Sprintf("/fields/%d/text", i), "must be less than %d characters", maxField+1)
			}
		}
	case "header":
		checkText(b.Text, "/text", maxHeader, true, bad)
	case "markdown":
		var text string
		if json.Unmarshal(b.Text, &text) != nil || text == "" {
			bad("/text", "must be more than 0 characters")
		}
	case "context":
		if n := len(b.Elements); n == 0 || n > maxContext {
			bad("/elements", "must have 1 to %d items", maxContext)
		}
	case "actions":
		b.checkActions(bad)
	case "image":
		if b.ImageURL == "" || b.AltText == "" {
			bad("", "missing required field: image_url or alt_text")
		}
	case "table":
		if len(b.Rows) == 0 || len(b.Rows) > maxRows {
			bad("/rows", "must have 1 to %d items", maxRows)
		}
		for i, row := range b.Rows {
			var cells []json.RawMessage
			if json.Unmarshal(row, &cells) != nil || len(cells) > maxColumns {
				bad(fmt.Sprintf("/rows/%d", i), "no more than %d items allowed", maxColumns)
			}
		}
	case "divider", "rich_text", "video", "context_actions", "plan", "task_card":
	default:
		bad("/type", "unsupported type: %s", b.Type)
	}
}

func (b block) checkActions(bad func(at, format string, args ...any)) {
	if n := len(b.Elements); n == 0 || n > maxElements {
		bad("/elements", "must have 1 to %d items", maxElements)
	}
	seen := map[string]bool{}
	for i, raw := range b.Elements {
		at := fmt.Sprintf("/elements/%d", i)
		var e element
		if json.Unmarshal(raw, &e) != nil {
			bad(at, "not an object")
			continue
		}
		if runes(e.ActionID) > maxID {
			bad(at+"/action_id", "must be less than %d characters", maxID+1)
		}
		if e.ActionID != "" && seen[e.ActionID] {
			bad(at+"/action_id", "action_id %q already exists", e.ActionID)
		}
		seen[e.ActionID] = true
		if e.Type != "button" {
			continue
		}
		checkText(e.Text, at+"/text", maxButton, true, bad)
		if runes(e.Value) > maxValue {
			bad(at+"/value", "must be less than %d characters", maxValue+1)
		}
	}
}

// checkText looks at a text object.
func checkText(raw json.RawMessage, at string, most int, plain bool, bad func(at, format string, args ...any)) {
	var t textObject
	if json.Unmarshal(raw, &t) != nil {
		bad(at, "missing required field: text")
		return
	}
	if t.Type != "plain_text" && (plain || t.Type != "mrkdwn") {
		bad(at+"/type", "unsupported type: %s", t.Type)
	}
	if n := runes(t.Text); n == 0 {
		bad(at+"/text", "must be more than 0 characters")
	} else if n > most {
		bad(at+"/text", "must be less than %d characters", most+1)
	}
}

// texts are all texts of the block in order.
func (b block) texts() []string {
	var all []string
	add := func(raw json.RawMessage) {
		var t textObject
		var s string
		if json.Unmarshal(raw, &s) == nil {
			all = append(all, s)
		} else if json.Unmarshal(raw, &t) == nil && t.Text != "" {
			all = append(all, t.Text)
		}
	}
	add(b.Text)
	for _, f := range b.Fields {
		all = append(all, f.Text)
	}
	for _, raw := range b.Elements {
		all = append(all, deepText(raw)...)
	}
	for _, raw := range b.Rows {
		all = append(all, deepText(raw)...)
	}
	return all
}

// deepText finds every "text" below raw, in order.
func deepText(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		var all []string
		for _, r := range list {
			all = append(all, deepText(r)...)
		}
		return all
	}
	var o struct {
		Text     json.RawMessage `json:"text"`
		Elements json.RawMessage `json:"elements"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	var s string
	if json.Unmarshal(o.Text, &s) == nil {
		return []string{s}
	}
	return append(deepText(o.Text), deepText(o.Elements)...)
}

// blocksText is what people read of the blocks, buttons and dividers left out.
func blocksText(raw json.RawMessage) string {
	var list []block
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var parts []string
	for _, b := range list {
		if b.Type != "actions" {
			parts = append(parts, b.texts()...)
		}
	}
	return strings.Join(parts, "\n")
}

// Buttons are the message's buttons, a row for each actions block.
func (m Message) Buttons() [][]Button {
	var list []block
	if json.Unmarshal(m.Blocks, &list) != nil {
		return nil
	}
	var rows [][]Button
	for _, b := range list {
		if b.Type != "actions" {
			continue
		}
		var row []Button
		for _, raw := range b.Elements {
			var e element
			var t textObject
			if json.Unmarshal(raw, &e) != nil || e.Type != "button" || json.Unmarshal(e.Text, &t) != nil {
				continue
			}
			row = append(row, Button{ActionID: e.ActionID, BlockID: b.BlockID, Text: t.Text, Value: e.Value})
		}
		rows = append(rows, row)
	}
	return rows
}

// mention finds <@U…>, <!channel>, <!here>, <!everyone> and <!subteam^S…>.
var mention = regexp.MustCompile(`<(?:@([UW][A-Z0-9]+)(?:\|[^>]*)?|!(channel|here|everyone)(?:\|[^>]*)?|!(subteam\^S[A-Z0-9]+)(?:\|[^>]*)?)>`)

// Mentions are the ids of people, and "channel", "here", "everyone" and user groups, whom the message rings.
func (m Message) Mentions() []string {
	var all []string
	for _, text := range []string{m.Text, m.Markdown, blocksText(m.Blocks)} {
		for _, hit := range mention.FindAllStringSubmatch(text, -1) {
			if who := hit[1] + hit[2] + hit[3]; !slices.Contains(all, who) {
				all = append(all, who)
			}
		}
	}
	return all
}
