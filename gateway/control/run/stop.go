package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/agentloop"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
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
var StopAll = control.Verb[*Runs, struct{}, StoppedAll]{
	Name: "stop.all", Help: "Stop every run and what waits behind them", Rights: rights.Owners,
	HTTP: "POST /v1/stop", Group: "runs", Chat: "stop all",
	Do: func(_ context.Context, c *Runs, call control.Call, _ struct{}) (StoppedAll, error) {
		stop := store.StopAll{By: call.Actor.Person, Via: call.Surface(), Before: 1 << 62}
		if call.Input != nil {
			stop.Before = call.Input.Seq
		}
		did, err := c.Commit(call, func(d store.Did) any { return stoppedAll(d) }, stop)
		if err != nil {
			return StoppedAll{}, err
		}
		match := func(first workspace.Input) bool { return first.Seq < stop.Before }
		for _, in := range did.All {
			c.Turns.Remove(in.Key, in.Stopped.Queued...)
			c.Summaries.CancelSummary(in.Key, match)
			c.Turns.Cancel(in.Key, agentloop.ErrStopped, match)
		}
		return stoppedAll(did), nil
	},
	Say: func(v StoppedAll) string {
		if v.Runs+v.Queued+v.Parts == 0 {
			return "Nothing is running anywhere."
		}
		return fmt.Sprintf("Stopped everywhere: %s, %s, %s.", workspace.Plural(v.Runs, "run"),
			workspace.Plural(v.Queued, "waiting message"), workspace.Plural(v.Parts, "unsent part"))
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

// Stopped is what a stop ended.
type Stopped struct {
	Run    workspace.RunID `json:"run,omitempty"`
	Queued int             `json:"queued"`
	Parts  int             `json:"parts"`
	// Summary says that one was being made for /compact.
	Summary bool `json:"summary,omitempty"`
}

func (v Stopped) say() string {
	var list []string
	if v.Run != "" {
		list = append(list, "run "+workspace.Short(v.Run))
	}
	if v.Summary {
		list = append(list, "the summary")
	}
	if v.Queued > 0 {
		list = append(list, workspace.Plural(v.Queued, "waiting message"))
	}
	if v.Parts > 0 {
		list = append(list, workspace.Plural(v.Parts, "unsent part"))
	}
	if len(list) == 0 {
		return "Nothing is running here."
	}
	return "Stopped: " + strings.Join(list, ", ") + "."
}

// mayStop is what stopping a turn needs. Only owners stop other people's.
var mayStop = rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own}

// StopTurn ends the running turn of the chat's session, what waits behind it and what it has not sent. It is committed first,
// then the turn is cancelled; a crash in between keeps the stop.
var StopTurn = control.Verb[*Runs, struct{}, Stopped]{
	Name: "stop", Help: "Stop what a session does and what waits behind it", Rights: mayStop, Chat: "stop", Say: Stopped.say,
	Do: func(_ context.Context, c *Runs, call control.Call, _ struct{}) (Stopped, error) { return c.stop(call) },
}

func (c *Runs) stop(call control.Call) (Stopped, error) {
	ses, err := c.Store.SessionByKey(call.Session)
	if errors.Is(err, workspace.ErrNotFound) {
		return Stopped{}, c.Answer(call, Stopped{})
	}
	if err != nil {
		return Stopped{}, err
	}
	stop := store.Stop{Session: ses.ID, By: call.Actor.Person, Before: 1 << 62}
	if call.Input != nil {
		stop.Before = call.Input.Seq
	}
	if !call.Owner() {
		stop.Requester = call.Actor.Person
	}
	match := func(first workspace.Input) bool { // the turn may be another one by now
		return first.Seq < stop.Before && (stop.Requester == "" || first.Person == stop.Requester)
	}
	summing := c.Summaries.CancelSummary(call.Session.String(), match) // of which nothing is stored yet
	view := func(d store.Did) Stopped {
		v := stoppedOf(d)
		v.Summary = summing
		return v
	}
	did, err := c.Commit(call, func(d store.Did) any { return view(d) }, stop)
	if err != nil {
		return Stopped{}, err
	}
	key := call.Session.String()
	c.Turns.Remove(key, did.Stopped.Queued...)
	c.Turns.Cancel(key, agentloop.ErrStopped, match)
	return view(did), nil
}

// Stop stops the turn that a run or a message is in, as StopTurn does in its chat. What has ended stays as it is.
var Stop = control.Verb[*Runs, ByRun, Stopped]{
	Name: "stop", Help: "Stop a run and what waits behind it", Rights: mayStop,
	HTTP: "POST /v1/runs/{id}/stop", Group: "runs", CLI: "run stop <id>", MCP: "stop_run",
	Do: func(_ context.Context, c *Runs, call control.Call, in ByRun) (Stopped, error) {
		f, err := c.found(call, in.Run)
		if err != nil || f.Ended() {
			return Stopped{}, err
		}
		if call.Session, err = workspace.ParseKey(f.Key); err != nil {
			return Stopped{}, err
		}
		return c.stop(call)
	},
	Show: func(_ ByRun, v Stopped) spec.Shown {
		switch {
		case v.Run == "" && v.Queued == 0:
			return spec.Shown{Line: "nothing was running"}
		case v.Run == "":
			return spec.Shown{Line: fmt.Sprintf("%d waiting messages cancelled", v.Queued)}
		}
		return spec.Shown{Line: "run " + workspace.Short(v.Run) + " stopped"}
	},
}

func stoppedOf(d store.Did) Stopped {
	return Stopped{Run: d.Stopped.Run, Queued: len(d.Stopped.Queued), Parts: int(d.Stopped.Parts)}
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

// Pause lets a run pause at its next step. A session whose run is paused stays its own: what is said in it waits.
var Pause = control.Verb[*Runs, ByRun, Paused]{
	Name: "pause", Help: "Let a run pause at its next step", Rights: mayPause,
	HTTP: "POST /v1/runs/{id}/pause", Group: "runs", CLI: "run pause <id>",
	Do: func(_ context.Context, c *Runs, call control.Call, in ByRun) (Paused, error) {
		return c.pause(call, in.Run, true)
	},
	Show: showPaused,
}

var Resume = control.Verb[*Runs, ByRun, Paused]{
	Name: "pause", Help: "Let a paused run go on", Rights: mayPause,
	HTTP: "POST /v1/runs/{id}/resume", Group: "runs", CLI: "run resume <id>",
	Do: func(_ context.Context, c *Runs, call control.Call, in ByRun) (Paused, error) {
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

func (c *Runs) pause(call control.Call, word control.RunWord, on bool) (Paused, error) {
	f, err := c.found(call, word)
	if err != nil {
		return Paused{}, err
	}
	if f.Run.ID == "" || f.Ended() {
		return Paused{}, workspace.Say(workspace.ErrConflict, "There is nothing under way in run %s.", clip.Runes(f.ID, 40))
	}
	match := func(first workspace.Input) bool { return first.RunID == "" || first.RunID == f.Run.ID }
	err = c.Store.Pause(f.Run.ID, on, call.Actor.Person, call.Surface())
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
