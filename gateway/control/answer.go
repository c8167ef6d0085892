package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/configs"
	"parley/workspace"
	"parley/workspace/store"
)

// ErrOtherBody says that an idempotency key came again with another request.
var ErrOtherBody = errors.New("idempotency key was used for another request")

// ErrTooLarge says that a text is longer than is taken.
var ErrTooLarge = errors.New("too large")

// MaxKey is how long an idempotency key may be, in bytes.
const MaxKey = 200

// OtherBody is ErrOtherBody with its sentence.
func OtherBody() error {
	return workspace.Say(fmt.Errorf("%w: %w", ErrOtherBody, workspace.ErrConflict), "This idempotency key was used for another request.")
}

// AnswerStore is what Answers uses of the store.
type AnswerStore interface {
	AnswerOf(person workspace.PersonID, key string) (store.Answer, error)
	InputByKey(source, account, key string) (workspace.Input, error)
	PutAnswer(person workspace.PersonID, key string, a store.Answer) error
	PutAnswerSoon(ctx context.Context, person workspace.PersonID, key string, a store.Answer, within time.Duration) error
}

// Answers keeps what clients were told of the writes that they gave a key.
type Answers struct {
	*Kernel
	Store AnswerStore
}

// Answered is what a client was told of a write that it gave a key.
type Answered struct {
	Hash   string // of what was asked
	Status int
	Body   string
}

// Of finds what the caller's key was answered; workspace.ErrNotFound: it is new, ErrOtherBody: a message has it. The verb
// itself checks rights.
func (a *Answers) Of(call Call, key string) (Answered, error) {
	was, err := a.Store.AnswerOf(call.Actor.Person, key)
	if !errors.Is(err, workspace.ErrNotFound) {
		return Answered(was), err
	}
	// the key of a message of the API is its client's idempotency key
	if _, merr := a.Store.InputByKey(configs.API, string(call.Actor.Person), key); !errors.Is(merr, workspace.ErrNotFound) {
		return Answered{}, errors.Join(OtherBody(), merr)
	}
	return Answered{}, err
}

// Keep keeps what the caller's key was answered, for 30 days; with Status 0 only what it was used for. workspace.ErrConflict: it
// was answered before.
func (a *Answers) Keep(call Call, key string, now Answered) error {
	if call.Actor.Person == "" {
		return workspace.ErrDenied
	}
	return a.Store.PutAnswer(call.Actor.Person, key, store.Answer(now))
}

// KeepSoon is Keep for what is done although the store may take nothing. Until the answer is stored a repeat acts again.
func (a *Answers) KeepSoon(ctx context.Context, call Call, key string, now Answered) {
	err := a.Store.PutAnswerSoon(ctx, call.Actor.Person, key, store.Answer(now), auditWithin)
	if err != nil && !errors.Is(err, workspace.ErrConflict) {
		a.log.Error("answer of an idempotency key is not stored yet", "actor", call.Actor.Person, "err", err)
	}
}
