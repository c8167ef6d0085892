// How commands end.

package cli

import "errors"

// MisuseError is a wrong command line or configuration.
type MisuseError struct{ error }

// Misuse says that the command line or the configuration is wrong: there is no use in trying again.
func Misuse(err error) error { return &MisuseError{err} }

func (e *MisuseError) Unwrap() error { return e.error }

// ErrSaid ends a command that failed and has said so.
var ErrSaid = errors.New("failed")

// ErrAborted says that the person ended the questions.
var ErrAborted = errors.New("ended; nothing was changed")
