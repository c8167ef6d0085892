package control

import (
	"context"
	"errors"
	"fmt"
	"os"

	"parley/agentloop"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/lazy"
	"parley/workspace/store"
)

// StoppedAll is what a stop of everything touched.
type StoppedAll struct {
	Sessions int `json:"sessions"`
	Runs     int `json:"runs"`
	Queued   int `json:"queued"`
	Parts    int `json:"parts"`
}

// StopAll stops every turn of every session, and what waits behind them.
var StopAll = Verb[struct{}, StoppedAll]{
	Name: "stop.all", Help: "Stop every run and what waits behind them", Rights: rights.Owners,
	HTTP: "POST /v1/stop", Group: "runs",
	Do: func(_ context.Context, c *Control, call Call, _ struct{}) (StoppedAll, error) {
		stop := store.StopAll{By: call.Actor.Person, Via: call.via(), Before: 1 << 62}
		if call.Input != nil {
			stop.Before = call.Input.Seq
		}
		did, err := c.commit(call, func(d store.Did) any { return stoppedAll(d) }, stop)
		if err != nil {
			return StoppedAll{}, err
		}
		match := func(first workspace.Input) bool { return first.Seq < stop.Before }
		for _, in := range did.All {
			c.Turns.Remove(in.Key, in.Stopped.Queued...)
			c.Prompts.CancelSummary(in.Key, match)
			c.Turns.Cancel(in.Key, agentloop.ErrStopped, match)
		}
		return stoppedAll(did), nil
	},
}

func stoppedAll(d store.Did) (v StoppedAll) {
	for _, in := range d.All {
		v.Sessions++
		if in.Stopped.Run != "" {
			v.Runs++
		}
		v.Queued += len(in.Stopped.Queued)
		v.Parts += int(in.Stopped.Parts)
	}
	return v
}

// Paused is what a pause or its end came to.
type Paused struct {
	RunID workspace.RunID    `json:"run_id"`
	State workspace.RunState `json:"state"`
	// Pausing says that it pauses at its next step, or once it has an answer that it waits for.
	Pausing bool `json:"pausing"`
}

// mayPause is what pausing a run needs, and having it go on.
var mayPause = rights.Row{Owner: rights.Direct, Member: rights.OwnDirect}

// PauseRun lets a run pause at its next step. A session whose run is paused stays its own: what is said in it waits.
var PauseRun = Verb[ByRun, Paused]{
	Name: "pause", Help: "Let a run pause at its next step", Rights: mayPause,
	HTTP: "POST /v1/runs/{id}/pause", Group: "runs", CLI: "run pause <id>",
	Do: func(_ context.Context, c *Control, call Call, in ByRun) (Paused, error) {
		return c.pause(call, in.Run, true)
	},
	Show: showPaused,
}

var ResumeRun = Verb[ByRun, Paused]{
	Name: "pause", Help: "Let a paused run go on", Rights: mayPause,
	HTTP: "POST /v1/runs/{id}/resume", Group: "runs", CLI: "run resume <id>",
	Do: func(_ context.Context, c *Control, call Call, in ByRun) (Paused, error) {
		return c.pause(call, in.Run, false)
	},
	Show: showPaused,
}

func showPaused(_ ByRun, v Paused) spec.Shown {
	how := "is " + string(v.State)
	switch {
	case v.Pausing && v.State == workspace.RunWaiting:
		how = "waits for an approval, and pauses then"
	case v.Pausing:
		how = "pauses at its next step"
	}
	return spec.Shown{Line: fmt.Sprintf("run %s %s", workspace.Short(v.RunID), how)}
}

func (c *Control) pause(call Call, word RunWord, on bool) (Paused, error) {
	f, err := c.foundRun(call, word)
	if err != nil {
		return Paused{}, err
	}
	if f.Run.ID == "" || f.Ended() {
		return Paused{}, workspace.Say(workspace.ErrConflict, "There is nothing under way in run %s.", clip.Runes(f.ID, 40))
	}
	match := func(first workspace.Input) bool { return first.RunID == "" || first.RunID == f.Run.ID }
	err = c.Store.Pause(f.Run.ID, on, call.Actor.Person, call.via())
	if err != nil && !errors.Is(err, workspace.ErrConflict) {
		return Paused{}, err
	}
	if err == nil {
		c.Turns.Pausing(f.Key, on, match)
	}
	now, readErr := c.Store.Run(f.Run.ID)
	if readErr != nil {
		return Paused{}, readErr
	}
	switch {
	case workspace.Runs.Final(now.State) || now.StopBy != "":
		return Paused{}, workspace.Say(workspace.ErrConflict, "Run %s has ended.", workspace.Short(now.ID))
	case err != nil && on != (now.PauseBy != ""):
		return Paused{}, err
	case !on && now.State == workspace.RunPaused:
		now.State = workspace.RunRunning
	}
	return Paused{RunID: now.ID, State: now.State, Pausing: on && now.State != workspace.RunPaused}, nil
}

// kept is the end of a command's result whose middle was cut out, as tools/builtin writes it: the file that holds all of
// it. What a command writes itself may look like it; then it leads to another output of the same work folder, or nowhere.
var kept = lazy.Regexp(`\n\(\d+ bytes in all; the middle is cut out; (?:all of it is|its first \d+ bytes are) in (\.output/[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}), which read_file shows\)\n\([^\n]*\)$`)

// RunOutput opens the file with all that a command of a run wrote, as it is: bytes of a stranger. It is there as long as
// the work folder has it. The caller closes it.
func (c *Control) RunOutput(ctx context.Context, call Call, run RunWord, callID string) (*os.File, error) {
	if err := c.may(call, "run.output"); err != nil {
		return nil, err
	}
	v, err := c.Run(ctx, call, run)
	if err != nil {
		return nil, err
	}
	missing := workspace.Say(workspace.ErrNotFound, "No output of this call is kept.")
	name := outputOf(v.Steps, callID)
	key, err := workspace.ParseKey(v.Key)
	if err != nil || name == "" {
		return nil, missing
	}
	var room workspace.RoomID
	if len(v.Inputs) > 0 {
		room = v.Inputs[0].RoomID
	}
	f, err := c.Work.Output(key, workspace.Actor{Person: v.Run.Requester, Role: v.Run.Role}, room, name)
	if errors.Is(err, workspace.ErrNotFound) || errors.Is(err, workspace.ErrDenied) || errors.Is(err, os.ErrNotExist) {
		return nil, missing
	}
	return f, err
}

// outputOf is the file of a call, relative to the work folder; empty: there is none.
func outputOf(steps []workspace.Step, callID string) string {
	for _, st := range steps {
		if st.Kind != workspace.StepTool || st.CallID != callID || st.Tool != "exec" {
			continue
		}
		for _, part := range st.Body.Content {
			if m := kept().FindStringSubmatch(part.Text); m != nil {
				return m[1]
			}
		}
	}
	return ""
}
