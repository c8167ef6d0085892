// Presses: how a chat's button, or a reply that quotes the question, says what was decided.

package approval

import (
	"slices"
	"strings"
	"unicode"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/clip"
)

// buttonPrefix begins the value of a button that decides; the whole is well below the 64 bytes that networks take.
const buttonPrefix = "approval:"

func buttonValue(id workspace.ApprovalID, c workspace.Choice) string {
	return buttonPrefix + string(id) + ":" + string(c)
}

// readButton is what a button's value decides; nil: it is not one of those that buttonValue makes.
func readButton(value string) *workspace.Press {
	rest, ok := strings.CutPrefix(value, buttonPrefix)
	id, choice, both := strings.Cut(rest, ":")
	if !ok || !both || len(id) != 26 {
		return nil
	}
	switch c := workspace.Choice(choice); c {
	case workspace.ChooseOnce, workspace.ChooseSession, workspace.ChooseDeny:
		return &workspace.Press{Approval: workspace.ApprovalID(id), Choice: c}
	}
	return nil
}

// Press is what an event decides that comes from a network: a button that was pressed, or a yes or no that quotes a message
// that asked; nil: nothing. In groups only buttons decide.
func (q *Questions) Press(ch *transport.Channel, in channels.Inbound) *workspace.Press {
	switch in.Kind {
	case channels.KindButton:
		return readButton(in.Text)
	case channels.KindMessage:
		return q.opt.Rooms.quoted(ch, in)
	}
	return nil
}

// PressOf is what a journalled command decides without words; nil: it is to be read. A reply that was edited to say something
// else decides nothing.
func (q *Questions) PressOf(in workspace.Input) *workspace.Press {
	switch p := in.Data.Press; {
	case p == nil && in.Kind == channels.KindButton:
		return oldPress(in.Text)
	case p != nil && in.Kind == channels.KindMessage:
		if c, why := saidIn(in.Text); c != p.Choice || why != p.Reason {
			return nil
		}
		return p
	default:
		return p
	}
}

// oldPress is a press that an earlier version journalled as the command that people type. It journalled replies that quote a
// question so as well, which are read as any command is.
func oldPress(line string) *workspace.Press {
	rest, ok := strings.CutPrefix(line, "/approve ")
	id, choice, both := strings.Cut(rest, " ")
	if !ok || !both {
		return nil
	}
	return &workspace.Press{Approval: workspace.ApprovalID(id), Choice: workspace.Choice(choice)}
}

// labels are the buttons, and spoken the words of a quoted reply, by which a question is answered on every network; the
// first word is the one that is told.
var (
	labels = map[workspace.Choice]string{
		workspace.ChooseOnce: "Once", workspace.ChooseSession: "This session", workspace.ChooseDeny: "Deny",
	}
	spoken = map[workspace.Choice][]string{
		workspace.ChooseOnce:    {"yes", "y", "ok", "once"},
		workspace.ChooseSession: {"session", "this session"},
		workspace.ChooseDeny:    {"no", "n", "deny"},
	}
)

// choices are the answers that a question takes, in the order in which they are offered.
func choices(ap workspace.Approval) (list []workspace.Choice) {
	for _, g := range ap.Body.Grants {
		list = append(list, workspace.Choice(g))
	}
	return append(list, workspace.ChooseDeny)
}

// saidIn is what a quoted reply to a question says; the choice is empty where it says none. Behind a no may stand why.
func saidIn(text string) (workspace.Choice, string) {
	text = strings.TrimSpace(text)
	whole := strings.ToLower(strings.Trim(text, ".!"))
	for c, words := range spoken {
		if slices.Contains(words, whole) {
			return c, ""
		}
	}
	first, why := text, ""
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }); i >= 0 {
		first, why = text[:i], strings.TrimLeft(text[i:], " \t\n.,;:!–—-")
	}
	if why != "" && slices.Contains(spoken[workspace.ChooseDeny], strings.ToLower(first)) {
		return workspace.ChooseDeny, clip.Runes(why, MaxReason)
	}
	return "", ""
}

// actions are the buttons of a message that asks; none when it is answered, or not shown whole.
func (r *Rooms) actions(o *workspace.Outbound) [][]channels.Action {
	ap, err := r.opt.Store.ApprovalAskedBy(*o)
	if err != nil || ap.State != workspace.ApprovalPending || !answerable(ap, o.RoomID) {
		return nil
	}
	var row []channels.Action
	for _, c := range choices(ap) {
		row = append(row, channels.Action{Label: labels[c], Value: buttonValue(ap.ID, c)})
	}
	return [][]channels.Action{row}
}

// answerable says whether all of a question was shown in a room.
func answerable(ap workspace.Approval, room workspace.RoomID) bool {
	return slices.Contains(ap.Body.Rooms, workspace.AskedRoom{Room: room, Whole: true})
}

// quoted is what a reply decides that answers a message that asked; nil: it does not.
func (r *Rooms) quoted(ch *transport.Channel, in channels.Inbound) *workspace.Press {
	choice, why := saidIn(in.Text)
	if choice == "" || in.ReplyTo == "" || in.To.Kind != channels.DM || ch.Traits.Local {
		return nil
	}
	room, err := r.opt.Store.RoomByAddress(in.To)
	if err != nil {
		return nil
	}
	list, err := r.opt.Store.QuestionsOf(room.ID)
	if err != nil {
		r.opt.Log.Error("questions of a room not read", "room", room.ID, "err", err)
		return nil
	}
	for _, o := range list {
		for _, p := range o.Parts {
			if p.RemoteID != in.ReplyTo {
				continue
			}
			ap, err := r.opt.Store.ApprovalAskedBy(o)
			if err != nil || !answerable(ap, room.ID) {
				return nil
			}
			return &workspace.Press{Approval: ap.ID, Choice: choice, Reason: why}
		}
	}
	return nil
}
