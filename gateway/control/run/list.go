package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// saidLength is how many characters lists show of what a run was asked.
const saidLength = 140

// Chat is the session of a run.
type Chat struct {
	Session    string              `json:"session"` // key
	Title      string              `json:"session_title"`
	SessionID  workspace.SessionID `json:"session_id"`
	Generation int                 `json:"generation"`
}

// Item is a run in a list, with whose it is.
type Item struct {
	ID    workspace.RunID   `json:"id"`
	Agent workspace.AgentID `json:"agent"`
	Chat
	Source        string             `json:"source"` // the network, or local
	Requester     workspace.PersonID `json:"requester"`
	RequesterName string             `json:"requester_name"`
	AskedBy       string             `json:"asked_by"` // id, role and, in quotes, the name of the requester: what to show
	Role          workspace.Role     `json:"role"`
	State         workspace.RunState `json:"state"`
	Reason        string             `json:"reason,omitempty"`
	Model         string             `json:"model,omitempty"`
	Said          string             `json:"said"` // the beginning of what it was asked
	Started       time.Time          `json:"started"`
	Ended         *time.Time         `json:"ended,omitempty"`
	Tries         int                `json:"tries"`
	TaskID        string             `json:"task_id,omitempty"`
	ParentRun     workspace.RunID    `json:"parent_run,omitempty"`
	Usage         control.Usage      `json:"usage"`
}

// ListIn says which runs are wanted.
type ListIn struct {
	Agent   workspace.AgentID   `query:"agent" help:"only of this agent, by *id*"`
	Session control.SessionWord `query:"session" help:"only of this session, by *key*"`

	State workspace.RunState `query:"state" help:"only in this *state*" enum:"running,waiting,paused,completed,failed,timeout,user_stopped"`

	Requester workspace.PersonID `query:"requester" flag:"person" help:"only of this person, by *id*"`
	spec.Page
}

// List lists runs. Next is where to go on, also when the page is not full.
var List = control.Verb[*Runs, ListIn, spec.List[Item]]{
	Name: "runs", Help: "List runs, the newest first", Rights: rights.Owners,
	HTTP: "GET /v1/runs", Group: "runs", CLI: "run list", MCP: "list_runs",
	Do: func(ctx context.Context, c *Runs, call control.Call, in ListIn) (spec.List[Item], error) {
		l := spec.Whole[Item](nil)
		var rows []store.RunRow
		var next workspace.RunID
		var err error
		switch {
		case in.Session != "":
			rows, next, err = c.sessionRuns(call, in)
		case in.State.Live():
			rows, err = c.liveRuns(in)
		default:
			rows, next, err = c.someRuns(ctx, in)
		}
		if err != nil {
			return l, err
		}
		names, titles := map[workspace.PersonID]string{}, map[string]string{}
		for _, r := range rows {
			it, err := c.runItem(names, r)
			if err == nil {
				it.Title, err = c.Find.Title(titles, it.Session)
			}
			if err != nil {
				return l, err
			}
			l.Items = append(l.Items, it)
		}
		if text := string(next); next != "" {
			l.Next = &text
		}
		return l, nil
	},
	Show: func(_ ListIn, l spec.List[Item]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "SESSION", "STATE", "TOOK", "USED", "BEGAN", "SAID"}, Next: l.Next}
		for _, r := range l.Items {
			var took any = ""
			if r.Ended != nil {
				took = r.Ended.Sub(r.Started)
			}
			state := control.Ending(string(r.State), r.Reason)
			said := spec.Brief{Text: r.Said, Columns: 40}
			title := spec.Brief{Text: r.Title, Columns: 28}
			s.Rows = append(s.Rows, []any{r.ID, title, state, took, r.Usage, r.Started, said})
		}
		return s
	},
}

func (c *Runs) runItem(names map[workspace.PersonID]string, r store.RunRow) (Item, error) {
	it := Item{ID: r.ID, Agent: r.Key.Agent, Chat: Chat{Session: r.Key.String(), SessionID: r.SessionID, Generation: r.Gen},
		Source: control.SourceOf(r.Key), Requester: r.Requester, Role: r.Role, State: r.State, Reason: r.Reason,
		Model: r.Model, Started: r.Started.UTC(), Ended: control.Moment(r.Ended), Tries: r.Tries, TaskID: r.TaskID,
		ParentRun: r.ParentRun, Usage: control.UsageOf(r.Usage)}
	var err error
	if it.RequesterName, err = c.Find.Name(names, r.Requester); err != nil {
		return it, err
	}
	it.AskedBy = workspace.Who(r.Requester, r.Role, it.RequesterName)
	inputs, err := c.Store.RunInputs(r.ID)
	if len(inputs) > 0 {
		it.Said = clip.Runes(strings.Join(strings.Fields(inputs[0].Text), " "), saidLength)
	}
	return it, err
}

func (q ListIn) wants(r store.RunRow) bool {
	return (q.Agent == "" || q.Agent == r.Key.Agent) && (q.State == "" || q.State == r.State) &&
		(q.Requester == "" || q.Requester == r.Requester)
}

// liveRuns are few: as many as there are sessions at work.
func (c *Runs) liveRuns(q ListIn) ([]store.RunRow, error) {
	rows, err := c.Store.LiveRunRows()
	rows = slices.DeleteFunc(rows, func(r store.RunRow) bool { return !q.wants(r) })
	slices.SortFunc(rows, func(a, b store.RunRow) int { return strings.Compare(string(b.ID), string(a.ID)) })
	return rows, err
}

func (c *Runs) someRuns(ctx context.Context, q ListIn) (found []store.RunRow, next workspace.RunID, err error) {
	before := workspace.RunID(q.After)
	for looked := 0; looked < control.LookMost; looked += control.LookAt {
		rows, err := c.Store.RunsBefore(before, control.LookAt)
		if err != nil {
			return nil, "", err
		}
		for _, r := range rows {
			if !q.wants(r) {
				continue
			}
			if len(found) == q.Limit {
				return found, found[len(found)-1].ID, nil
			}
			found = append(found, r)
		}
		if len(rows) < control.LookAt {
			return found, "", nil
		}
		before = rows[len(rows)-1].ID
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
	}
	return found, before, nil
}

// sessionRuns reads a session's own journal, the newest generation first.
func (c *Runs) sessionRuns(call control.Call, q ListIn) (found []store.RunRow, next workspace.RunID, err error) {
	key, err := c.Find.Key(call, q.Session)
	if err != nil {
		return nil, "", err
	}
	gens, err := c.Store.Generations(key)
	if err != nil || len(gens) == 0 {
		return nil, "", errors.Join(err, control.NoSession(workspace.ErrNotFound, key))
	}
	before := int64(1) << 62
	if q.After != "" {
		run, err := c.Store.Run(workspace.RunID(q.After))
		if err != nil {
			return nil, "", workspace.Say(err, "There is no run %q.", clip.Runes(q.After, 40))
		}
		for len(gens) > 0 && gens[0].ID != run.SessionID {
			gens = gens[1:]
		}
		if before, err = c.Store.RunFirst(run.ID); err != nil {
			return nil, "", err
		}
	}
	looked := 0
	for _, g := range gens {
		for {
			rows, first, err := c.Store.SessionRunsBefore(g.ID, before, q.Limit+1)
			if err != nil {
				return nil, "", err
			}
			for i, r := range rows {
				before, looked = first[i], looked+1
				if !q.wants(r) {
					continue
				}
				if len(found) == q.Limit {
					return found, found[len(found)-1].ID, nil
				}
				found = append(found, r)
			}
			if len(rows) <= q.Limit {
				break
			}
			if looked >= control.LookMost {
				return found, rows[len(rows)-1].ID, nil
			}
		}
		before = 1 << 62
	}
	return found, "", nil
}

// detailed is a run with what its page shows.
type detailed struct {
	View
	Generation int
	Name       string              // of the requester
	Title      string              // of the session, for who reaches it
	Approvals  []approval.Approval // that it asked for, oldest first
	Delivery   string              // of its answer: delivered, not_delivered, unknown, not_requested
}

// detail reads a run, or what waits for one, as Read does, with whose it is and whether its answer arrived.
func (c *Runs) detail(ctx context.Context, call control.Call, id control.RunWord) (detailed, error) {
	v, err := c.Read(ctx, call, id)
	if err != nil {
		return detailed{}, err
	}
	d := detailed{View: v, Delivery: "not_requested"}
	if d.Title, err = c.Find.TitleFor(call, v.Key); err != nil {
		return d, err
	}
	who := v.Run.Requester
	if v.Run.ID == "" {
		if len(v.Inputs) > 0 {
			who = v.Inputs[0].Person
		}
		d.Name, err = c.Find.Name(map[workspace.PersonID]string{}, who)
		return d, err
	}
	if d.Name, err = c.Find.Name(map[workspace.PersonID]string{}, who); err != nil {
		return d, err
	}
	ses, err := c.Store.Session(v.Run.SessionID)
	if err != nil {
		return d, err
	}
	d.Generation, d.Key = ses.Gen, ses.Key.String()
	if d.Approvals, err = c.Approvals.OfRun(call, v.Run.ID); err != nil {
		return d, err
	}
	out, err := c.Store.OutboundOfRun(v.Run.ID)
	if errors.Is(err, workspace.ErrNotFound) {
		return d, nil
	}
	d.Delivery = delivery(out)
	return d, err
}

// delivery is how an answer's parts are shown (design of the states of parts): all arrived, one surely did not, or
// nobody knows yet.
func delivery(o workspace.Outbound) string {
	shown := "delivered"
	for _, p := range o.Parts {
		switch p.State {
		case workspace.PartDead, workspace.PartCancelled:
			return "not_delivered"
		case workspace.PartSent:
		default:
			shown = "unknown"
		}
	}
	return shown
}
