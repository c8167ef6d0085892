package control

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// RunQuery says which runs are wanted; its zero value is the newest of everybody.
type RunQuery struct {
	Agent     workspace.AgentID
	Session   string // key
	State     workspace.RunState
	Requester workspace.PersonID
	After     workspace.RunID // the last of the page before
	Limit     int
}

// RunItem is a run with whose it is.
type RunItem struct {
	Run        workspace.Run
	Key        workspace.Key
	Generation int
	Name       string // of the requester
	Said       string // the beginning of what it was asked
}

// How many runs a page may look at: one that finds few among many ends early, and says where to go on.
const (
	lookAt   = 500
	lookMost = 10_000
	saidMost = 140 // characters
)

// Runs lists runs, newest first. next is where to go on, also when the page is not full; empty: there is no more.
func (c *Control) Runs(ctx context.Context, call Call, q RunQuery) (items []RunItem, next workspace.RunID, err error) {
	if err := c.may(call, "runs"); err != nil {
		return nil, "", err
	}
	if q.State != "" {
		if _, known := workspace.Runs[q.State]; !known && !slices.Contains([]workspace.RunState{workspace.RunCompleted, workspace.RunFailed, workspace.RunTimeout, workspace.RunStopped}, q.State) {
			return nil, "", workspace.Say(workspace.ErrInvalid, "There is no state %q of runs.", clip.Runes(string(q.State), 40))
		}
	}
	var rows []store.RunRow
	switch {
	case q.Session != "":
		rows, next, err = c.sessionRuns(q)
	case q.State.Live():
		rows, err = c.liveRuns(q)
	default:
		rows, next, err = c.someRuns(ctx, q)
	}
	if err != nil {
		return nil, "", err
	}
	names := map[workspace.PersonID]string{}
	for _, r := range rows {
		it := RunItem{Run: r.Run, Key: r.Key, Generation: r.Gen}
		if it.Name, err = c.nameOf(names, r.Requester); err != nil {
			return nil, "", err
		}
		inputs, err := c.Store.RunInputs(r.ID)
		if err != nil {
			return nil, "", err
		}
		if len(inputs) > 0 {
			it.Said = clip.Runes(strings.Join(strings.Fields(inputs[0].Text), " "), saidMost)
		}
		items = append(items, it)
	}
	return items, next, nil
}

func (q RunQuery) wants(r store.RunRow) bool {
	return (q.Agent == "" || q.Agent == r.Key.Agent) && (q.State == "" || q.State == r.State) && (q.Requester == "" || q.Requester == r.Requester)
}

// liveRuns are few: as many as there are sessions at work.
func (c *Control) liveRuns(q RunQuery) ([]store.RunRow, error) {
	rows, err := c.Store.LiveRunRows()
	rows = slices.DeleteFunc(rows, func(r store.RunRow) bool { return !q.wants(r) })
	slices.SortFunc(rows, func(a, b store.RunRow) int { return strings.Compare(string(b.ID), string(a.ID)) })
	return rows, err
}

func (c *Control) someRuns(ctx context.Context, q RunQuery) (found []store.RunRow, next workspace.RunID, err error) {
	before := q.After
	for looked := 0; looked < lookMost; looked += lookAt {
		rows, err := c.Store.RunsBefore(before, lookAt)
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
		if len(rows) < lookAt {
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
func (c *Control) sessionRuns(q RunQuery) (found []store.RunRow, next workspace.RunID, err error) {
	missing := workspace.Say(workspace.ErrNotFound, "There is no session %q.", clip.Runes(q.Session, 200))
	key, err := workspace.ParseKey(q.Session)
	if err != nil {
		return nil, "", missing
	}
	gens, err := c.Store.Generations(key)
	if err != nil || len(gens) == 0 {
		return nil, "", errors.Join(err, missing)
	}
	before := int64(1) << 62
	if q.After != "" {
		run, err := c.Store.Run(q.After)
		if err != nil {
			return nil, "", workspace.Say(err, "There is no run %q.", clip.Runes(string(q.After), 40))
		}
		for len(gens) > 0 && gens[0].ID != run.SessionID {
			gens = gens[1:]
		}
		if before, err = c.Store.RunFirst(q.After); err != nil {
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
			if looked >= lookMost {
				return found, rows[len(rows)-1].ID, nil
			}
		}
		before = 1 << 62
	}
	return found, "", nil
}

// nameOf is what people call a person.
func (c *Control) nameOf(known map[workspace.PersonID]string, id workspace.PersonID) (string, error) {
	if name, ok := known[id]; ok || id == "" {
		return name, nil
	}
	p, err := c.Store.PersonByID(id)
	if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return "", err
	}
	known[id] = p.Name
	return p.Name, nil
}

// RunDetail is a run as its page shows it.
type RunDetail struct {
	RunView
	Generation int
	Name       string     // of the requester
	Approvals  []Approval // that it asked for, oldest first
	Delivery   string     // of its answer: delivered, not_delivered, unknown, not_requested
}

// Detail reads a run, or what waits for one, as Run does, with whose it is and whether its answer arrived.
func (c *Control) Detail(ctx context.Context, call Call, id string) (RunDetail, error) {
	v, err := c.Run(ctx, call, id)
	if err != nil {
		return RunDetail{}, err
	}
	d := RunDetail{RunView: v, Delivery: "not_requested"}
	who := v.Run.Requester
	if v.Run.ID == "" {
		if len(v.Inputs) > 0 {
			who = v.Inputs[0].Person
		}
		d.Name, err = c.nameOf(map[workspace.PersonID]string{}, who)
		return d, err
	}
	if d.Name, err = c.nameOf(map[workspace.PersonID]string{}, who); err != nil {
		return d, err
	}
	ses, err := c.Store.Session(v.Run.SessionID)
	if err != nil {
		return d, err
	}
	d.Generation, d.Key = ses.Gen, ses.Key.String()
	if d.Approvals, err = c.RunApprovals(call, v.Run.ID); err != nil {
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
