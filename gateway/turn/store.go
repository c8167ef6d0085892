// The units and readers of the store that turns use.

package turn

import (
	"time"

	"parley/workspace"
	"parley/workspace/store"
)

// Store is what turns use of the store, by what it is for. Over fills it.
type Store struct {
	Record
	States
	Runs
	Sessions
}

// Over is all of it over one store.
func Over(s *store.Store) Store { return Store{Record: s, States: s, Runs: s, Sessions: s} }

// Record is the units by which a run is written down.
type Record interface {
	Begin(b store.Begin, key workspace.Key, room workspace.RoomID, inputs []workspace.Input, interrupted *store.Finish) (store.Begun, error)
	Take(run workspace.Run, inputs []workspace.Input, bodies []workspace.EntryBody) (store.Stepped, error)
	Step(u store.StepUnit) (store.Stepped, error)
	Finish(f store.Finish) (store.Finished, error)
	Mark(m store.Mark) error
	Trouble(run workspace.RunID, trouble *workspace.Trouble, then func()) // not waited for
	MoveDeadline(run workspace.RunID, to time.Time)                       // not waited for
	IDs() *workspace.IDs
}

// States is the units that move a run, an input or an answer from one state to another, beside the record of a run.
type States interface {
	Resume(run workspace.RunID) (workspace.Run, error)
	Hold(run workspace.Run, from, to workspace.RunState, by workspace.PersonID) error
	MoveRun(run workspace.RunID, from, to workspace.RunState) error
	EndInputs(ends []store.Ending, notices ...store.NewOutbound) ([]workspace.Outbound, error)
	Outbound(list ...store.NewOutbound) ([]workspace.Outbound, error)
	AddUpload(u workspace.Upload, since time.Time, most int64) error
}

// Runs reads runs.
type Runs interface {
	Run(id workspace.RunID) (workspace.Run, error)
	LiveRun(session workspace.SessionID) (workspace.Run, error)
	LiveRuns() ([]workspace.Run, error)
	Steps(run workspace.RunID) ([]workspace.Step, error)
	RunInputs(run workspace.RunID) ([]workspace.Input, error)
	RunApprovals(run workspace.RunID) ([]workspace.Approval, error)
	RunEntries(session workspace.SessionID, run workspace.RunID) ([]workspace.Entry, error)
	Epoch() int64
}

// Sessions reads sessions, and what comes in to them.
type Sessions interface {
	Session(id workspace.SessionID) (workspace.Session, error)
	SessionByKey(key workspace.Key) (workspace.Session, error)
	SessionUsage(session workspace.SessionID, after int64) (sum workspace.Usage, last int64, err error)
	PersonByID(id workspace.PersonID) (workspace.Person, error)
	Input(id workspace.InputID) (workspace.Input, error)
}
