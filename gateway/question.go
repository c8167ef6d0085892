package gateway

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"parley/channels"
	"parley/gateway/delivery"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

const (
	maxQuestionParts = 6 // messages that one question may take; a longer one goes as a file
	maxDeciders      = 5 // people who are asked directly
)

// audience says who hears a question, and writes what they read. Where the requester may decide, it is asked where they
// wrote; in a group by buttons alone, which only those who may decide can press. Else those who may decide are asked
// where they last wrote directly, and the requester is told so. Pages, the command line and the API show every question.
func (a *approvals) audience(ap *workspace.Approval, r *recorder) (rooms []workspace.AskedRoom, list []store.NewOutbound) {
	here := r.room.ID != "" && r.line != nil && !r.line.Traits.Local
	own := a.mayAnswer(*ap, ap.Requester)
	asked := map[workspace.RoomID]bool{}
	ask := func(room workspace.RoomID, l *transport.Channel, direct bool) bool {
		if asked[room] || l == nil {
			return asked[room]
		}
		q, whole := a.question(*ap, r, l, room, direct)
		if !whole && !direct { // nobody can answer there
			return false
		}
		asked[room] = true
		rooms, list = append(rooms, workspace.AskedRoom{Room: room, Whole: whole}), append(list, r.replying(q))
		return true
	}
	surfaces := a.g.snapshot().Domains[ap.Domain].Surfaces
	if ap.Domain != "" && len(surfaces) > 0 { // it is decided there and nowhere else
		a.surfaces(surfaces, ask)
	} else if system := a.g.snapshot().Domains[ap.Domain].Elsewhere; !system {
		a.people(*ap, r, here, own, ask)
	}
	if here && !asked[r.room.ID] {
		list = append(list, r.replying(delivery.Notice("approval:"+string(ap.ID)+":notice", r.room.ID, workspace.OutNotice, elsewhere(*ap, len(rooms)))))
	}
	return rooms, list
}

// people are asked where they are.
func (a *approvals) people(ap workspace.Approval, r *recorder, here, own bool, ask func(workspace.RoomID, *transport.Channel, bool) bool) {
	there := false
	switch {
	case here && r.room.Kind == channels.DM && own:
		there = ask(r.room.ID, r.line, true)
	case here && r.room.Kind != channels.DM && r.line.Traits.Buttons:
		there = ask(r.room.ID, r.line, false)
	}
	if own && (there || !here) { // else the page, the command line and the API are where they asked
		return
	}
	for _, who := range a.deciders(ap) {
		room, err := a.store.DirectRoom(who, a.g.channels.Local()...)
		if errors.Is(err, workspace.ErrNotFound) {
			continue
		}
		addr, err := a.g.deliver.Address(room)
		if err != nil {
			a.log.Error("where a person is asked is not known", "person", who, "err", err)
			continue
		}
		if l := a.g.channels.Serving(addr); l != nil && !l.Traits.Local {
			ask(room, l, true)
		}
	}
}

// surfaces are the rooms among the ways by which a domain is decided about: channel:NAME:PEER.
func (a *approvals) surfaces(list []string, ask func(workspace.RoomID, *transport.Channel, bool) bool) {
	for _, s := range list {
		rest, ok := strings.CutPrefix(s, "channel:")
		name, peer, both := strings.Cut(rest, ":")
		l := a.g.channels.Named(name)
		if !ok || !both || l == nil || l.Traits.Local {
			continue
		}
		for _, kind := range []channels.PeerKind{channels.DM, channels.Group, channels.Room} {
			room, err := a.store.RoomByAddress(channels.Address{Network: l.Network, Account: l.Account(), Kind: kind, Peer: channels.PeerID(peer)})
			if err == nil {
				ask(room.ID, l, kind == channels.DM)
			}
		}
	}
}

// elsewhere tells a requester that somebody else is asked.
func elsewhere(ap workspace.Approval, rooms int) string {
	if rooms == 0 { // nobody who may decide has ever written directly, or a system of its own is asked
		who := fmt.Sprintf("An owner gives it in WebChat or by `parley approval approve %s`.", workspace.Short(ap.ID))
		if ap.Domain != "" {
			who = fmt.Sprintf("Whom %s belongs to is asked.", plainLabel(ap.Domain))
		}
		return fmt.Sprintf("I need a permission for this (%s, approval %s). %s I go on when it is decided, at the latest in %s.",
			ap.Tool, workspace.Short(ap.ID), who, span(ap.Expires.Sub(ap.Created)))
	}
	return fmt.Sprintf("I need a permission for this (%s) and have asked for it (approval %s). I go on when it is decided, at the latest in %s.",
		ap.Tool, workspace.Short(ap.ID), span(ap.Expires.Sub(ap.Created)))
}

// deciders are the people who may decide about a question.
func (a *approvals) deciders(ap workspace.Approval) (list []workspace.PersonID) {
	people, _, err := a.store.People()
	if err != nil {
		a.log.Error("people cannot be read", "err", err)
		return nil
	}
	for _, p := range people {
		if len(list) < maxDeciders && a.g.control.Decides(ap, workspace.Actor{Person: p.ID, Role: p.Role}) == nil {
			list = append(list, p.ID)
		}
	}
	return list
}

// question is the message by which a room is asked. whole says that it holds all that there is to know, so that it can
// be answered there.
func (a *approvals) question(ap workspace.Approval, r *recorder, l *transport.Channel, room workspace.RoomID, direct bool) (store.NewOutbound, bool) {
	out := store.NewOutbound{Key: ap.QuestionKey(room), RoomID: room, RunID: ap.RunID, Kind: workspace.OutApproval, Open: true, OnUnknown: workspace.DropUnknown}
	head, tail := a.head(ap, r), a.tail(ap, l, direct)
	out.Text = head + "\n\n" + fenced(ap.Body.Shown) + "\n" + tail
	if out.Spans = delivery.Cut(out.Text, l.Traits); len(out.Spans) > 0 && len(out.Spans) <= questionParts(l.Traits) {
		return out, true
	}
	if data := []byte(ap.Body.Shown); l.Traits.MaxFile > 0 && int64(len(data)) <= l.Traits.MaxFile {
		ref, err := r.ts.putBlob(data)
		if err == nil {
			out.Text = head + fmt.Sprintf("\n\nAll of it, %d bytes, is in the file before this message. Read it first.\n", len(data)) + tail
			out.Spans = append([]store.Span{{Blob: ref}}, delivery.Cut(out.Text, l.Traits)...)
			return out, true
		}
		a.log.Error("a question cannot be kept as a file", "approval", ap.ID, "err", err)
	}
	out.Text = head + fmt.Sprintf("\n\nIt is too long to be shown here whole (%d bytes), so it cannot be answered here. WebChat shows it, and so does `parley approval show %s`.",
		len(ap.Body.Shown), workspace.Short(ap.ID))
	out.Spans = delivery.Cut(out.Text, l.Traits)
	return out, false
}

func questionParts(t channels.Traits) int {
	if t.MaxParts > 0 {
		return min(t.MaxParts, maxQuestionParts)
	}
	return maxQuestionParts
}

// head says what is asked, by whom and from where.
func (a *approvals) head(ap workspace.Approval, r *recorder) string {
	who := workspace.Who(ap.Requester, ap.Role, ap.Body.Asked)
	where := "from the API"
	if r != nil && r.room.ID != "" {
		where = "on " + string(r.room.Network)
		if r.room.Kind != channels.DM {
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
func (a *approvals) tail(ap workspace.Approval, l *transport.Channel, direct bool) string {
	s := fmt.Sprintf("Approval %s, for %s; no answer is a no.", workspace.Short(ap.ID), span(ap.Expires.Sub(ap.Created)))
	switch {
	case l.Traits.Buttons:
		return s
	case direct:
		return s + fmt.Sprintf(" Answer **yes** or **no** to this very message, or send `/approve %s once` or `/approve %s deny`.", workspace.Short(ap.ID), workspace.Short(ap.ID))
	}
	return s
}

// span is a length of time for people.
func span(d time.Duration) string {
	s := d.Round(time.Second).String()
	if t, ok := strings.CutSuffix(s, "m0s"); ok {
		s = t + "m"
	}
	if t, ok := strings.CutSuffix(s, "h0m"); ok {
		s = t + "h"
	}
	return s
}

// fenced is a text as a block of code that it cannot end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// actions are the buttons of a message that asks; none when it is answered, or not shown whole.
func (a *approvals) actions(o *workspace.Outbound) [][]channels.Action {
	ap, err := a.store.ApprovalAskedBy(*o)
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
