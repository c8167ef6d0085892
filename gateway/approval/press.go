// Presses: how a chat's button, or a reply that quotes the question, says what was decided.

package approval

import (
	"strings"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
)

// buttonPrefix begins the value of a button that decides; the whole is well below the 64 bytes that networks take.
const buttonPrefix = "approval:"

func buttonValue(id workspace.ApprovalID, say string) string {
	return buttonPrefix + string(id) + ":" + say
}

// Pressed is the command that a button's value stands for; empty: it is no button of ours.
func Pressed(value string) string {
	rest, ok := strings.CutPrefix(value, buttonPrefix)
	id, say, both := strings.Cut(rest, ":")
	if !ok || !both || len(id) != 26 || strings.ContainsAny(rest, " \n\"'") {
		return ""
	}
	return "/approve " + id + " " + say
}

// pressedID is the question that such a command is about.
func pressedID(line string) workspace.ApprovalID {
	rest, _ := strings.CutPrefix(line, "/approve ")
	id, _, _ := strings.Cut(rest, " ")
	return workspace.ApprovalID(id)
}

// yesOrNo is what a quoted reply to a question says; empty: neither.
func yesOrNo(text string) string {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!")) {
	case "yes", "y", "ok", "once":
		return "once"
	case "no", "n", "deny":
		return "deny"
	}
	return ""
}

// actions are the buttons of a message that asks; none when it is answered, or not shown whole.
func (r *Rooms) actions(o *workspace.Outbound) [][]channels.Action {
	ap, err := r.opt.Store.ApprovalAskedBy(*o)
	if err != nil || ap.State != workspace.ApprovalPending || !ap.AnswerableIn(o.RoomID) {
		return nil
	}
	labels := map[workspace.Grant]string{workspace.Once: "Once", workspace.ForSession: "This session"}
	var yes []channels.Action
	for _, g := range ap.Body.Grants {
		yes = append(yes, channels.Action{Label: labels[g], Value: buttonValue(ap.ID, string(g))})
	}
	return [][]channels.Action{append(yes, channels.Action{Label: "Deny", Value: buttonValue(ap.ID, "deny")})}
}

// Quoted is the command that a yes or no stands for which answers a message that asked; empty: it is none.
// In groups only buttons decide.
func (q *Questions) Quoted(ch *transport.Channel, in channels.Inbound) string {
	return q.opt.Rooms.quoted(ch, in)
}

func (r *Rooms) quoted(ch *transport.Channel, in channels.Inbound) string {
	say := yesOrNo(in.Text)
	if say == "" || in.Kind != channels.KindMessage || in.ReplyTo == "" || in.To.Kind != channels.DM || ch.Traits.Local {
		return ""
	}
	room, err := r.opt.Store.RoomByAddress(in.To)
	if err != nil {
		return ""
	}
	list, err := r.opt.Store.QuestionsOf(room.ID)
	if err != nil {
		r.opt.Log.Error("questions of a room not read", "room", room.ID, "err", err)
		return ""
	}
	for _, o := range list {
		for _, p := range o.Parts {
			if p.RemoteID != in.ReplyTo {
				continue
			}
			ap, err := r.opt.Store.ApprovalAskedBy(o)
			if err != nil || !ap.AnswerableIn(room.ID) {
				return ""
			}
			return "/approve " + string(ap.ID) + " " + say
		}
	}
	return ""
}
