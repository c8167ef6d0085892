// Package run is the verbs about runs: which there are, what they did and why, and their end or pause.
package run

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/control/view"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/store"
)

// Runs does the verbs about runs. All fields are needed.
type Runs struct {
	*control.Kernel
	Store     Store
	Turns     Turns
	Summaries Summaries
	Work      WorkFolders
	Approvals Approvals
}

// Store is what these verbs use of the store, by what it is for. Over fills it.
type Store struct {
	Journal
	Lists
	Sessions
}

// Over is all of it over one store.
func Over(s *store.Store) Store { return Store{Journal: s, Lists: s, Sessions: s} }

// Journal reads one run, or what waits for one.
type Journal interface {
	Run(id workspace.RunID) (workspace.Run, error)
	RunInputs(run workspace.RunID) ([]workspace.Input, error)
	Steps(run workspace.RunID) ([]workspace.Step, error)
	Input(id workspace.InputID) (workspace.Input, error)
	RunEntries(session workspace.SessionID, run workspace.RunID) ([]workspace.Entry, error)
	InputEntry(id workspace.InputID) (workspace.Entry, error)
	OutboundOfRun(id workspace.RunID) (workspace.Outbound, error)
}

// Lists reads many runs.
type Lists interface {
	RunsBefore(before workspace.RunID, limit int) ([]store.RunRow, error)
	LiveRunRows() ([]store.RunRow, error)
	FailingRuns(requester workspace.PersonID, since time.Time) ([]store.RunRow, error)
	SessionRunsBefore(session workspace.SessionID, n int64, limit int) (rows []store.RunRow, first []int64, err error)
	RunFirst(id workspace.RunID) (n int64, err error)
	LastRun(session workspace.SessionID) (workspace.Run, error)
}

// Sessions reads what runs are in, and has them pause.
type Sessions interface {
	Session(id workspace.SessionID) (workspace.Session, error)
	SessionByKey(key workspace.Key) (workspace.Session, error)
	Generations(key workspace.Key) ([]workspace.Session, error)
	Pause(run workspace.RunID, on bool, by workspace.PersonID, via string) error
}

// Turns is the turns of all sessions. *turn.Turns is one.
type Turns interface {
	// Cancel ends the running turn of a session if match accepts its first input.
	Cancel(key string, cause error, match func(first workspace.Input) bool) bool
	// Remove takes inputs out of the queue that are ended in the journal.
	Remove(key string, seqs ...int64)
	// Pausing asks the turn of a session, if match accepts its first input, to pause at its next step, or to go on.
	Pausing(key string, on bool, match func(first workspace.Input) bool)
}

// Summaries are those that commands are having made. *turn.Prompts makes them.
type Summaries interface {
	// CancelSummary ends the summary that a command is having made, if match accepts the command.
	CancelSummary(key string, match func(command workspace.Input) bool) bool
}

// WorkFolders is the folders in which turns work. turn.WorkFolders is.
type WorkFolders interface {
	// Output opens a file in the one that a run of this session by this actor had.
	Output(key workspace.Key, actor workspace.Actor, room workspace.RoomID, name string) (*os.File, error)
}

// Approvals tells what runs have asked. *approval.Approvals does.
type Approvals interface {
	// OfRun lists what a run has asked, oldest first, for who may read the run.
	OfRun(call control.Call, run workspace.RunID) ([]approval.Approval, error)
}

// View is a run with what it was for and what it did.
type View struct {
	Run    workspace.Run
	Inputs []workspace.Input
	Steps  []workspace.Step
	Text   string // of the answer, or of the failure
	Key    string // of the session
}

// Read reads a run by its id, or by the id of an input: then the run that took it. An input that no run has taken
// yet gives a view with no run in it.
func (c *Runs) Read(_ context.Context, call control.Call, word control.RunWord) (View, error) {
	if err := c.Allow(call, "run.read"); err != nil {
		return View{}, err
	}
	id, err := c.Find.Run(call, word)
	if err != nil {
		return View{}, err
	}
	missing := workspace.Say(workspace.ErrNotFound, "There is no run %q.", id)
	var v View
	run, err := c.Store.Run(workspace.RunID(id))
	if errors.Is(err, workspace.ErrNotFound) {
		in, err := c.Store.Input(workspace.InputID(id))
		if err != nil {
			return v, missing
		}
		v.Inputs, v.Key = []workspace.Input{in}, in.Binding.Key
		if !call.Owner() && in.Person != call.Actor.Person {
			return View{}, missing
		}
		if in.RunID == "" {
			v.Text, err = c.commandReply(in)
			return v, err
		}
		run, err = c.Store.Run(in.RunID)
		if err != nil {
			return v, err
		}
	} else if err != nil {
		return v, err
	}
	if !call.Owner() && run.Requester != call.Actor.Person {
		return View{}, missing
	}
	v.Run = run
	if v.Inputs, err = c.Store.RunInputs(run.ID); err != nil {
		return v, err
	}
	if len(v.Inputs) > 0 {
		v.Key = v.Inputs[0].Binding.Key
	}
	if v.Steps, err = c.Store.Steps(run.ID); err != nil {
		return v, err
	}
	v.Text, err = c.answerText(run)
	return v, err
}

// readers are those who may read runs, as far as they are their own.
var readers = rights.Row{Owner: rights.Direct, Member: rights.OwnDirect}

// Show reads a run by its id, or by the id of a message: then the run that took it.
var Show = control.Verb[*Runs, ByRun, Detail]{
	Name: "run.read", Help: "Read a run: why it was, what it did and when", Rights: readers,
	HTTP: "GET /v1/runs/{id}", Group: "runs", MCP: "get_run",
	Do: func(ctx context.Context, c *Runs, call control.Call, in ByRun) (Detail, error) {
		d, err := c.detail(ctx, call, in.Run)
		if err != nil {
			return Detail{}, err
		}
		return d.item(string(in.Run)), nil
	},
}

// LogIn says which lines of a run's log are wanted.
type LogIn struct {
	ByRun
	Offset int64 `query:"offset" help:"how many lines are *left out* at the beginning" min:"0"`
	Limit  int   `query:"limit" help:"how *many* at most" min:"1" max:"500" default:"50"`
}

// Log lists what happened in a run, a line a piece.
var Log = control.Verb[*Runs, LogIn, spec.List[view.LogLine]]{
	Name: "run.read", Help: "Read what happened in a run, a line a piece", Rights: readers, HTTP: "GET /v1/runs/{id}/log", Group: "runs",
	Do: func(_ context.Context, c *Runs, call control.Call, in LogIn) (spec.List[view.LogLine], error) {
		f, err := c.found(call, in.Run)
		if err != nil {
			return spec.List[view.LogLine]{}, err
		}
		entries, err := c.Lines(f)
		lines := view.LogOf(entries)
		lines = lines[min(int(in.Offset), len(lines)):]
		return spec.PageOf(lines, in.Limit, func(l view.LogLine) string { return strconv.Itoa(l.N + 1) }), err
	},
}

// Whole reads a run with its log, by its id or by that of a message.
func (c *Runs) Whole(ctx context.Context, call control.Call, word control.RunWord) (Run, error) {
	v, err := c.Read(ctx, call, word)
	if err != nil {
		return Run{}, err
	}
	f := Found{Run: v.Run}
	if v.Run.ID == "" && len(v.Inputs) > 0 {
		f.Input = v.Inputs[0]
	}
	out := v.item(string(word))
	entries, err := c.Lines(f)
	out.Log = view.LogOf(entries)
	return out, err
}

// answerText is the last thing a run said.
func (c *Runs) answerText(run workspace.Run) (string, error) {
	entries, err := c.Store.RunEntries(run.SessionID, run.ID)
	if err != nil {
		return "", err
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if text := e.Body.Plain(); text != "" && (e.Role == workspace.RoleAssistant || e.Body.Type == "error") {
			return text, nil
		}
	}
	return "", nil
}

// commandReply is what a command of a local session was answered.
func (c *Runs) commandReply(in workspace.Input) (string, error) {
	e, err := c.Store.InputEntry(in.ID)
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return e.Body.Plain(), err
}

// Found is a run, or the input that waits for one, for those who watch it. Run is zero while no run has taken it.
type Found struct {
	ID    string // by which it was found, whole
	Run   workspace.Run
	Input workspace.Input // zero when the id was a run's
	Key   string          // of the session
}

// Ended says that nothing more will come of it.
func (f Found) Ended() bool {
	if f.Run.ID != "" {
		return workspace.Runs.Final(f.Run.State)
	}
	return workspace.Inputs.Final(f.Input.State)
}

// Of is Read without what the run did.
func (c *Runs) Of(_ context.Context, call control.Call, word control.RunWord) (Found, error) {
	if err := c.Allow(call, "run.read"); err != nil {
		return Found{}, err
	}
	return c.found(call, word)
}

// found is one that is the caller's own, or anybody's for an owner.
func (c *Runs) found(call control.Call, word control.RunWord) (Found, error) {
	id, err := c.Find.Run(call, word)
	if err != nil {
		return Found{}, err
	}
	missing := workspace.Say(workspace.ErrNotFound, "There is no run %q.", string(word))
	f := Found{ID: id}
	run := workspace.RunID(id)
	in, err := c.Store.Input(workspace.InputID(id))
	switch {
	case err == nil && !call.Owner() && in.Person != call.Actor.Person:
		return f, missing
	case err == nil:
		f.Input, f.Key, run = in, in.Binding.Key, in.RunID
	case !errors.Is(err, workspace.ErrNotFound):
		return f, err
	}
	if run == "" {
		return f, nil
	}
	f.Run, err = c.Store.Run(run)
	if errors.Is(err, workspace.ErrNotFound) || err == nil && !call.Owner() && f.Run.Requester != call.Actor.Person {
		return Found{}, missing
	}
	if err != nil || f.Key != "" {
		return f, err
	}
	ses, err := c.Store.Session(f.Run.SessionID)
	f.Key = ses.Key.String()
	return f, err
}

// Lines lists what the transcript holds of a found run, or of a found command.
func (c *Runs) Lines(f Found) ([]workspace.Entry, error) {
	if f.Run.ID != "" {
		return c.Store.RunEntries(f.Run.SessionID, f.Run.ID)
	}
	e, err := c.Store.InputEntry(f.Input.ID)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil, nil
	}
	return []workspace.Entry{e}, err
}

// ByRun names a run, or the message that waits for one.
type ByRun struct {
	Run control.RunWord `path:"id"`
}
