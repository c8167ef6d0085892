// Package approval is the verbs about approvals: which wait or were answered, and the answer. Who may decide is the rule of
// gateway/approval.
package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
)

// Approvals does the verbs about approvals. All fields are needed.
type Approvals struct {
	*control.Kernel
	Store     Store
	Questions Questions
}

// Store is what these verbs use of it.
type Store interface {
	Approval(id workspace.ApprovalID) (workspace.Approval, error)
	ApprovalsBefore(before workspace.ApprovalID, limit int) ([]workspace.Approval, error)
	RunApprovals(run workspace.RunID) ([]workspace.Approval, error)
	OpenApprovals() ([]workspace.Approval, error)
	Grants() ([]workspace.Approval, error)
	Steps(run workspace.RunID) ([]workspace.Step, error)
	Room(id workspace.RoomID) (workspace.Room, error)
	PersonByID(id workspace.PersonID) (workspace.Person, error)
}

// Questions are those of the turns, with the rule of who may decide. *approval.Questions of the stations is one.
type Questions interface {
	// Decides refuses who may not decide about a question, DecidesBy also who may not by this surface.
	Decides(ap workspace.Approval, who workspace.Actor) error
	DecidesBy(ap workspace.Approval, who workspace.Actor, surface func() string) error
	DeciderName(ap workspace.Approval) string
	// Current is a question as it stands, ended where its time is over; TooLate tells those who come after the first answer.
	Current(ap workspace.Approval) (workspace.Approval, error)
	TooLate(ap workspace.Approval) error
	// Resolved tells the turn and the rooms.
	Resolved(ap workspace.Approval)
	// Holds says whether a grant for a session still does; Revoked tells pages that one does no more.
	Holds(ap workspace.Approval) bool
	Revoked()
}

// Approval is a question with what its readers want to know beside.
type Approval struct {
	workspace.Approval
	State       workspace.ApprovalState // as it is told: unknown when its call was begun and nobody knows what came of it
	Name        string                  // of the requester
	DeciderName string
	Title       string // of the session, for who reaches it
	Mine        bool   // the caller may decide about it here
}

// AskedBy is who asked for the call, as whoever decides about it reads it.
func (a Approval) AskedBy() string {
	return workspace.Who(a.Requester, a.Role, cmp.Or(a.Body.Asked, a.Name))
}

// Stands is how a question stands, in half a sentence.
func (a Approval) Stands() string {
	s := string(a.State)
	if a.DeciderName != "" {
		s += " by " + a.DeciderName
	}
	if a.Via != "" {
		s += " (" + a.Via + ")"
	}
	if a.Domain != "" {
		s += ", belongs to " + workspace.Line(a.Domain, 40)
	}
	return s
}

// approvalsShown is how many recent ones a short id is looked for among.
const approvalsShown = 200

// readers are those who may read questions, as far as they concern them.
var readers = rights.Row{Owner: rights.Direct, Member: rights.OwnDirect}

// ListIn says which questions are wanted.
type ListIn struct {
	State string `query:"state" help:"only in this *state*" enum:"pending,approved,consumed,denied,expired,cancelled,unknown"`
	spec.Page
}

// inChat is how many questions a chat is told of.
const inChat = 20

// List lists questions that the caller may decide about or asked for; a chat is told of those that wait.
var List = control.Verb[*Approvals, ListIn, spec.List[Item]]{
	Name: "approval.list", Help: "List questions to people, the newest first", Rights: readers,
	HTTP: "GET /v1/approvals", Group: "approvals", CLI: "approval list", MCP: "list_approvals", Chat: "approve",
	Do: func(_ context.Context, c *Approvals, call control.Call, in ListIn) (spec.List[Item], error) {
		if call.Input != nil {
			in.State, in.Limit = string(workspace.ApprovalPending), inChat
		}
		l, err := c.list(call, in)
		if err != nil {
			return l, err
		}
		return l, c.Answer(call, l)
	},
	Show: func(_ ListIn, l spec.List[Item]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "STATE", "TOOL", "ASKED BY", "DOMAIN", "ASKED", "BEGINS"}, Next: l.Next}
		for _, it := range l.Items {
			begins := spec.Brief{Text: strings.ReplaceAll(it.Text, "\n", " "), Columns: 50}
			s.Rows = append(s.Rows, []any{it.Short, it.State, it.Tool, it.AskedBy, it.Domain, it.Created, begins})
		}
		return s
	},
	Say: sayList,
}

// list is a page of them. Next goes on behind the last that was looked at.
func (c *Approvals) list(call control.Call, in ListIn) (spec.List[Item], error) {
	l, after := spec.Whole[Item](nil), workspace.ApprovalID(in.After)
	for looked := 0; looked < control.LookMost; {
		rows, err := c.Store.ApprovalsBefore(after, control.LookAt)
		if err != nil {
			return l, err
		}
		for _, ap := range rows {
			it, err := c.item(call, ap)
			switch {
			case err != nil:
				return l, err
			case it == nil || in.State != "" && it.State != in.State:
			case len(l.Items) == in.Limit:
				l.Next = &l.Items[in.Limit-1].ID
				return l, nil
			default:
				l.Items = append(l.Items, *it)
			}
			after = ap.ID
		}
		if looked += len(rows); len(rows) < control.LookAt {
			return l, nil
		}
	}
	next := string(after)
	l.Next = &next
	return l, nil
}

func sayList(l spec.List[Item]) string {
	if len(l.Items) == 0 {
		return "Nothing waits for an answer."
	}
	var b strings.Builder
	cut := false
	for _, ap := range l.Items {
		text := workspace.Line(ap.Text, 120)
		cut = cut || text != ap.Text
		fmt.Fprintf(&b, "- **%s** %s: `%s`", ap.Short, workspace.Line(ap.Tool, 40), strings.ReplaceAll(text, "`", "ˋ"))
		if ap.Domain != "" {
			fmt.Fprintf(&b, ", belongs to %s", workspace.Line(ap.Domain, 40))
		}
		fmt.Fprintf(&b, ", asked for by %s\n", ap.AskedBy)
	}
	if cut {
		b.WriteString("Here they are cut short: read one whole where it was asked, in WebChat, or by `parley approval show`. ")
	}
	b.WriteString("`/approve <id> once`, `session` where it may be, or `deny`, with the reason behind it, answers it.")
	return b.String()
}

// item is a question as the caller sees it; nil: it is not their business.
func (c *Approvals) item(call control.Call, ap workspace.Approval) (*Item, error) {
	if !c.sees(call, ap) {
		return nil, nil
	}
	v, err := c.view(call, ap)
	it := v.Item()
	return &it, err
}

// Show reads one, by its id or the short form of a recent one.
var Show = control.Verb[*Approvals, control.ByID, Item]{
	Name: "approval.list", Help: "Read a question whole", Rights: readers,
	HTTP: "GET /v1/approvals/{id}", Group: "approvals", CLI: "approval show <id>",
	Do: func(_ context.Context, c *Approvals, call control.Call, in control.ByID) (Item, error) {
		ap, err := c.find(call, in.ID)
		if err != nil {
			return Item{}, err
		}
		v, err := c.view(call, ap)
		return v.Item(), err
	},
	Show: func(_ control.ByID, it Item) spec.Shown { return it.shown() },
}

func (c *Approvals) view(call control.Call, ap workspace.Approval) (v Approval, err error) {
	v = Approval{Approval: ap, State: ap.State, DeciderName: c.Questions.DeciderName(ap)}
	if ap.State == workspace.ApprovalConsumed {
		steps, err := c.Store.Steps(ap.RunID)
		if err != nil {
			return v, err
		}
		i := slices.IndexFunc(steps, func(st workspace.Step) bool { return st.CallID == ap.CallID })
		if i >= 0 && steps[i].State == workspace.StepUnknown {
			v.State = workspace.ApprovalUnknown // its call was begun, and nobody knows what came of it
		}
	}
	v.Mine = ap.State == workspace.ApprovalPending && c.decidesHere(call, ap) == nil
	if v.Title, err = c.Find.TitleFor(call, ap.Session); err != nil {
		return v, err
	}
	v.Name, err = c.Find.Name(map[workspace.PersonID]string{}, ap.Requester)
	return v, err
}

// sees says whether a question is the caller's business: owners see all, others what they asked for or may decide.
func (c *Approvals) sees(call control.Call, ap workspace.Approval) bool {
	return call.Owner() || ap.Requester == call.Actor.Person || c.Questions.Decides(ap, call.Actor) == nil
}

func (c *Approvals) find(call control.Call, which string) (workspace.Approval, error) {
	missing := workspace.Say(workspace.ErrNotFound, "There is no approval %q.", clip.Runes(which, 40))
	ap, err := c.Store.Approval(workspace.ApprovalID(strings.ToUpper(which)))
	if errors.Is(err, workspace.ErrNotFound) {
		recent, err := c.Store.ApprovalsBefore("", approvalsShown)
		if err != nil {
			return ap, err
		}
		i := slices.IndexFunc(recent, func(ap workspace.Approval) bool {
			return strings.EqualFold(workspace.Short(ap.ID), which) && c.sees(call, ap)
		})
		if i < 0 {
			return ap, missing
		}
		return recent[i], nil
	}
	if err == nil && !c.sees(call, ap) {
		return workspace.Approval{}, missing
	}
	return ap, err
}

// OfRun lists what a run has asked, oldest first, for who may read the run.
func (c *Approvals) OfRun(call control.Call, run workspace.RunID) (items []Approval, err error) {
	list, err := c.Store.RunApprovals(run)
	for _, ap := range list {
		v, err := c.view(call, ap)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
	}
	return items, err
}

// Waiting counts the questions that the caller may answer; none, when it is not theirs to answer any.
func (c *Approvals) Waiting(call control.Call) (n int, err error) {
	if !c.May(call, "approval.list") {
		return 0, nil
	}
	list, err := c.Store.OpenApprovals()
	for _, ap := range list {
		if ap.State == workspace.ApprovalPending && c.Questions.Decides(ap, call.Actor) == nil {
			n++
		}
	}
	return n, err
}
