package telegram

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"parley/workspace/lazy"
)

// spoken is a text after its entities were read.
type spoken struct {
	text      string
	mentioned bool // by name, by id, or by /command@us
	command   bool // it begins with a command that is not another bot's
	foreign   bool // it begins with a command for another bot
}

// addressed reads what the entities say about us. The mention that a text begins with is cut, and so is our
// name behind a command; later mentions stay, since the sentence needs them. A bare command in a group is taken
// as ours, as all bots do: with privacy on Telegram delivers only those that are.
func (s *identity) addressed(text string, entities []entity) spoken {
	out := spoken{text: text}
	if len(entities) == 0 {
		if entities = plain(text); len(entities) == 0 {
			return out
		}
	}
	begin := 0 // where the text begins after mentions of us
	cutFrom, cutTo := 0, 0
	for _, e := range entities {
		start, end, ok := span(text, e.Offset, e.Length)
		if !ok {
			continue
		}
		first := start >= begin && strings.TrimSpace(text[begin:start]) == ""
		switch word := text[start:end]; e.Type {
		case "mention", "text_mention":
			if !s.is(word, e) {
				continue
			}
			out.mentioned = true
			if first {
				begin = end + len(text[end:]) - len(strings.TrimLeft(text[end:], " \t\r\n,:"))
			}
		case "bot_command":
			name, bot, named := strings.Cut(word, "@")
			ours := named && strings.EqualFold(bot, s.Username)
			out.mentioned = out.mentioned || ours
			switch {
			case !first:
			case named && !ours:
				out.foreign = !out.mentioned
			default:
				out.command = true
				if ours {
					cutFrom, cutTo = start+len(name), end
				}
			}
		}
	}
	if cutTo > 0 {
		out.text = text[begin:cutFrom] + text[cutTo:]
	} else {
		out.text = text[begin:]
	}
	if out.command {
		out.text = strings.TrimSpace(out.text)
	}
	return out
}

// unmarked finds commands and names.
var unmarked = lazy.Regexp(`\B(?:/\w{1,32}(?:@\w{3,32})?|@\w{3,32})(?:[\s,:.!?]|$)`)

// plain marks commands and names in a text without any entity, as Telegram itself would: some Bot API servers and
// bridges leave them out.
func plain(text string) (found []entity) {
	if !strings.ContainsAny(text, "/@") {
		return nil
	}
	for _, at := range unmarked().FindAllStringIndex(text, 8) {
		word := strings.TrimRight(text[at[0]:at[1]], " \t\r\n\f,:.!?")
		e := entity{Type: "mention", Offset: inUnits(text[:at[0]]), Length: len(word)}
		if word[0] == '/' {
			e.Type = "bot_command"
		}
		found = append(found, e)
	}
	return found
}

// inUnits counts a text as Telegram does, in UTF-16.
func inUnits(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// is says whether the entity names us: user names are exact but for case, ids are exact.
func (s *identity) is(word string, e entity) bool {
	if e.Type == "text_mention" {
		return e.User != nil && e.User.ID == s.ID
	}
	name, ok := strings.CutPrefix(word, "@")
	return ok && s.Username != "" && strings.EqualFold(name, s.Username)
}

// span turns UTF-16 units into byte positions. ok is false for a span outside the text or inside a character.
func span(text string, offset, length int) (start, end int, ok bool) {
	if offset < 0 || length <= 0 || length > len(text) || offset > len(text) {
		return 0, 0, false
	}
	start, end = -1, -1
	units := 0
	for i, r := range text {
		if units == offset {
			start = i
		}
		if units == offset+length {
			end = i
			break
		}
		if units++; r > 0xFFFF && r <= utf8.MaxRune {
			units++
		}
	}
	if end < 0 && units == offset+length {
		end = len(text)
	}
	return start, end, start >= 0 && end > start
}
