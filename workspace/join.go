package workspace

import "parley/channels"

// LinkOutcome says what became of a code that somebody gave to be joined with whoever asked for it.
type LinkOutcome string

const (
	Linked         LinkOutcome = "linked"
	LinkWrong      LinkOutcome = "wrong"      // no code, or none that lives
	LinkTries      LinkOutcome = "tries"      // they gave too many wrong ones
	LinkSame       LinkOutcome = "same"       // they are one person already
	LinkConfigured LinkOutcome = "configured" // the configuration names both, or gives who it names less than the other has
	LinkStranger   LinkOutcome = "stranger"   // somebody of the two is nobody any more
)

// Joined is what a link did.
type Joined struct {
	Outcome LinkOutcome
	Into    PersonID         // who both are now
	From    PersonID         // who is no more
	With    channels.Network // where the code was asked for
}

// Lower is the lesser of two roles. The empty one bounds nothing.
func (r Role) Lower(bound Role) Role {
	if bound == "" || bound.AtLeast(r) {
		return r
	}
	return bound
}
