// Questions in words: what a person reads, so that they know exactly what would be done.

package approval

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/channels"
	"parley/gateway/delivery"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/rule"
	"parley/workspace/store"
)

// maxQuestionParts is how many messages one question may take; a longer one goes as a file.
const maxQuestionParts = 6

// question is the message by which a room is asked. whole says that it holds all that there is to know, so that it can
// be answered there.
func (r *Rooms) question(by Asker, ap workspace.Approval, ch *transport.Channel, room workspace.RoomID,
	direct bool) (out store.NewOutbound, whole bool) {
	out = store.NewOutbound{Key: ap.QuestionKey(room), RoomID: room, RunID: ap.RunID, Kind: workspace.OutApproval, Open: true,
		OnUnknown: workspace.DropUnknown}
	head, tail := head(by.Room, ap), tail(ap, ch, direct)
	out.Text = head + "\n\n" + fenced(ap.Body.Shown) + "\n" + tail
	if out.Spans = delivery.Cut(out.Text, ch.Traits); len(out.Spans) > 0 && len(out.Spans) <= questionParts(ch.Traits) {
		return out, true
	}
	if data := []byte(ap.Body.Shown); ch.Traits.MaxFile > 0 && int64(len(data)) <= ch.Traits.MaxFile {
		ref, err := r.opt.KeepFile(data)
		if err == nil {
			out.Text = head + fmt.Sprintf("\n\nAll of it, %d bytes, is in the file before this message. Read it first.\n", len(data)) + tail
			out.Spans = append([]store.Span{{Blob: ref}}, delivery.Cut(out.Text, ch.Traits)...)
			return out, true
		}
		r.opt.Log.Error("question not kept as a file", "approval", ap.ID, "err", err)
	}
	out.Text = head + fmt.Sprintf("\n\nIt is too long to be shown here whole (%d bytes), so it cannot be answered here. "+
		"WebChat shows it, and so does `parley approval show %s`.", len(ap.Body.Shown), workspace.Short(ap.ID))
	out.Spans = delivery.Cut(out.Text, ch.Traits)
	return out, false
}

func questionParts(t channels.Traits) int {
	if t.MaxParts > 0 {
		return min(t.MaxParts, maxQuestionParts)
	}
	return maxQuestionParts
}

// head says what is asked, by whom and from where.
func head(asked workspace.Room, ap workspace.Approval) string {
	who := workspace.Who(ap.Requester, ap.Role, ap.Body.Asked)
	where := "from the API"
	if asked.ID != "" {
		where = "on " + string(asked.Network)
		if asked.Kind != channels.DM {
			where += ", in a group"
		}
	}
	s := fmt.Sprintf("**May I do this?** %s asked for it %s.", who, where)
	if ap.Domain != "" {
		s = fmt.Sprintf("**May I do this?** It belongs to **%s**. %s asked for it %s.", plainLabel(ap.Domain), who, where)
	}
	s += fmt.Sprintf("\nTool `%s`", codeLabel(ap.Tool))
	for _, x := range [][2]string{{"in", ap.Body.Cwd}, {"with", strings.Join(ap.Body.Env, " ")}, {"under", ap.Body.Sandbox}} {
		if x[1] != "" {
			s += ", " + x[0] + " `" + strings.ReplaceAll(workspace.Visible(x[1]), "`", "ˋ") + "`"
		}
	}
	for _, d := range ap.Body.Dangers {
		s += "\n⚠ **Look twice:** it " + d.In(ap.Body.Shown, "`")
	}
	if blanks.MatchString(ap.Body.Shown) {
		s += "\n**Look to the very end:** part of it stands behind a long stretch of blanks."
	}
	return s
}

// blanks push what follows out of sight.
var blanks = regexp.MustCompile(`[ \t]{40,}[^\s]|(\n[ \t]*){12,}[^\s]`)

// plainLabel is a name that cannot pass for markup or for more lines.
func plainLabel(s string) string {
	return strings.NewReplacer("*", "∗", "_", "＿", "`", "ˋ", "[", "(", "]", ")").Replace(workspace.Line(s, 60))
}

// codeLabel is a name between backticks, which it cannot end.
func codeLabel(s string) string { return strings.ReplaceAll(workspace.Line(s, 60), "`", "ˋ") }

// tail says how to answer, and until when.
func tail(ap workspace.Approval, ch *transport.Channel, direct bool) string {
	s := fmt.Sprintf("Approval %s, for %s; no answer is a no.", workspace.Short(ap.ID), rule.Span(ap.Expires.Sub(ap.Created)))
	if r := ap.Body.Rule; r != nil && slices.Contains(ap.Body.Grants, workspace.ForSession) {
		s += fmt.Sprintf("\n**%s** allows `%s` in this session for %s.", labels[workspace.ChooseSession],
			strings.ReplaceAll(r.Says(), "`", "ˋ"), rule.Span(r.For))
	}
	if ch.Traits.Buttons || !direct {
		return s
	}
	var words, commands []string
	for _, c := range choices(ap) {
		words = append(words, "**"+spoken[c][0]+"**")
		commands = append(commands, fmt.Sprintf("`/approve %s %s`", workspace.Short(ap.ID), c))
	}
	return s + fmt.Sprintf("\nAnswer %s to this very message, or send %s. Behind a no you may say why.", either(words), either(commands))
}

// either lists several, of which one is meant.
func either(list []string) string {
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// fenced is a text as a block of code that it cannot end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}
