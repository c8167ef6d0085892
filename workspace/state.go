package workspace

// The states of the line and the only edges between them. Store units check them with Can; a test reaches
// every edge of each table and is refused every other.
type (
	InputState    string
	RunState      string
	StepState     string
	PartState     string
	OutboundState string
)

const (
	InputRefused   InputState = "refused"
	InputContext   InputState = "context" // kept for others' turns to quote
	InputNoted     InputState = "noted"
	InputQueued    InputState = "queued"
	InputTaken     InputState = "taken"
	InputAnswered  InputState = "answered"
	InputSilent    InputState = "silent"
	InputFailed    InputState = "failed"
	InputStopped   InputState = "stopped"
	InputCancelled InputState = "cancelled"
	InputDropped   InputState = "dropped"
	InputStale     InputState = "stale"

	RunPending   RunState = "pending"
	RunQueued    RunState = "queued"
	RunStarting  RunState = "starting"
	RunRunning   RunState = "running"
	RunWaiting   RunState = "waiting"
	RunPaused    RunState = "paused"
	RunCompleted RunState = "completed"
	RunFailed    RunState = "failed"
	RunTimeout   RunState = "timeout"
	RunStopped   RunState = "user_stopped"

	StepPlanned   StepState = "planned"
	StepStarted   StepState = "started"
	StepDone      StepState = "done"
	StepFailed    StepState = "failed"
	StepUnknown   StepState = "unknown"
	StepRefused   StepState = "refused"
	StepCancelled StepState = "cancelled"

	PartReady     PartState = "ready"
	PartSending   PartState = "sending"
	PartLive      PartState = "live"
	PartSent      PartState = "sent"
	PartUnknown   PartState = "unknown"
	PartDead      PartState = "dead"
	PartCancelled PartState = "cancelled"
	PartParked    PartState = "parked"

	OutOpen      OutboundState = "open" // a streamed answer whose text is not final
	OutFinal     OutboundState = "final"
	OutCancelled OutboundState = "cancelled"
)

// Inputs, Runs, Steps and Parts are the tables. The empty state stands for "not yet stored".
var (
	Inputs = Table[InputState]{
		"":          {InputRefused, InputContext, InputNoted, InputQueued, InputTaken},
		InputQueued: {InputTaken, InputAnswered, InputFailed, InputCancelled, InputDropped, InputStale},
		InputTaken:  {InputAnswered, InputSilent, InputFailed, InputStopped, InputQueued},
		InputStale:  {InputQueued},
	}
	Runs = Table[RunState]{
		"":          {RunPending, RunRunning},
		RunPending:  {RunQueued, RunStarting, RunFailed, RunStopped},
		RunQueued:   {RunStarting, RunFailed, RunStopped},
		RunStarting: {RunRunning, RunFailed, RunStopped},
		RunRunning:  {RunCompleted, RunFailed, RunTimeout, RunStopped, RunWaiting, RunPaused},
		RunWaiting:  {RunRunning, RunFailed, RunStopped},
		RunPaused:   {RunRunning, RunFailed, RunStopped},
	}
	Steps = Table[StepState]{
		"":          {StepDone, StepPlanned},
		StepPlanned: {StepStarted, StepRefused, StepCancelled},
		StepStarted: {StepDone, StepFailed, StepUnknown},
	}
	Parts = Table[PartState]{
		"":          {PartReady, PartSending},
		PartReady:   {PartSending, PartDead, PartCancelled, PartParked},
		PartSending: {PartLive, PartSent, PartReady, PartUnknown, PartDead, PartCancelled, PartParked},
		PartLive:    {PartSent, PartDead, PartCancelled, PartParked},
		PartUnknown: {PartSent, PartReady, PartDead, PartCancelled, PartParked},
		PartParked:  {PartReady, PartCancelled},
		PartDead:    {PartReady},
	}
)

// Table maps a state to those that may follow it.
type Table[S comparable] map[S][]S

// Can says whether the edge is drawn.
func (t Table[S]) Can(from, to S) bool {
	for _, s := range t[from] {
		if s == to {
			return true
		}
	}
	return false
}

// Final says that nothing follows.
func (t Table[S]) Final(s S) bool { return len(t[s]) == 0 }

// Live says whether a run holds its session.
func (s RunState) Live() bool { return s == RunRunning || s == RunWaiting || s == RunPaused }
