package agentloop

import "context"

// Runner carries out runs. A Loop does, by asking models; whatever else may do it is given the same turn and the same
// record, and leaves queueing, resuming, deadlines and delivery to those who gave them. Safe for concurrent use.
type Runner interface {
	// Run carries a turn out to its end and records it with exactly one Finish, after each of its steps. It returns nil
	// after that commit, and otherwise says why there is none: the context ended with ErrRestart, ErrShutdown or a plain
	// cancel, the run waits or pauses (ErrWaiting, ErrPaused), or the recorder failed. A turn with a journal goes on
	// behind it. emit may be nil; what it is told is shown and not kept.
	Run(ctx context.Context, t Turn, rec Recorder, emit Emit) error
}

var _ Runner = (*Loop)(nil)
