package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/gateway/control"
	"parley/gateway/control/view"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// failingFor is how long a run that a model has failed waits for who asked, unless something else is said in its session.
const failingFor = 24 * time.Hour

// Failing is a run that a model fails, or has failed.
type Failing struct {
	RunID   workspace.RunID    `json:"run_id"`
	Session string             `json:"session"` // key
	State   workspace.RunState `json:"state"`
	Said    string             `json:"said"` // the beginning of what it was asked
	Started time.Time          `json:"started"`
	Ended   *time.Time         `json:"ended,omitempty"`
	Trouble view.Trouble       `json:"trouble"`
}

// ListFailing lists what waits for the caller since a model fails: their own runs that it fails now, and the last runs of sessions
// that it has failed within a day.
var ListFailing = control.Verb[*Runs, struct{}, spec.List[Failing]]{
	Name: "run.read", Help: "List your runs that a model fails, the newest first", Rights: readers,
	HTTP: "GET /v1/failing", Group: "runs", CLI: "run failing",
	Do: func(_ context.Context, c *Runs, call control.Call, _ struct{}) (spec.List[Failing], error) {
		rows, err := c.failing(call)
		l := spec.Whole[Failing](nil)
		for _, r := range rows {
			it := Failing{RunID: r.ID, Session: r.Key.String(), State: r.State, Started: r.Started.UTC(), Ended: control.Moment(r.Ended),
				Trouble: *view.TroubleOf(r.Trouble, r.State.Live())}
			inputs, err := c.Store.RunInputs(r.ID)
			if err != nil {
				return l, err
			}
			if len(inputs) > 0 {
				it.Said = clip.Runes(control.OneLine(inputs[0].Text, saidLength), saidLength)
			}
			l.Items = append(l.Items, it)
		}
		return l, err
	},
	Show: func(_ struct{}, l spec.List[Failing]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "SESSION", "STATE", "BEGAN", "CAUSE"}}
		for _, r := range l.Items {
			s.Rows = append(s.Rows, []any{r.RunID, control.ShortKey(r.Session), r.State, r.Started, r.Trouble.Sentence})
		}
		return s
	},
}

// Waiting is how many runs wait for the caller since a model fails.
func (c *Runs) Waiting(call control.Call) (int, error) {
	if !c.May(call, "run.read") {
		return 0, nil
	}
	rows, err := c.failing(call)
	return len(rows), err
}

func (c *Runs) failing(call control.Call) (list []store.RunRow, err error) {
	rows, err := c.Store.FailingRuns(call.Actor.Person, c.Now().Add(-failingFor))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		waits := r.State == workspace.RunRunning
		if r.State == workspace.RunFailed || r.State == workspace.RunTimeout {
			if waits, err = c.last(r); err != nil {
				return nil, err
			}
		}
		if waits {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b store.RunRow) int { return b.Started.Compare(a.Started) })
	return list, nil
}

// last says whether nothing else was begun in a run's session since.
func (c *Runs) last(r store.RunRow) (bool, error) {
	ses, err := c.Store.SessionByKey(r.Key)
	if errors.Is(err, workspace.ErrNotFound) {
		return false, nil // it was removed
	}
	if err != nil || ses.ID != r.SessionID {
		return false, err
	}
	newest, err := c.Store.LastRun(ses.ID)
	return newest.ID == r.ID, err
}
