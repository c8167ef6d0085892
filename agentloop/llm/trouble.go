package llm

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/workspace"
	"parley/workspace/lazy"
)

// maxSaid is how much of a server's words people are shown, in characters.
const maxSaid = 200

// masked is what a server leaves of a key when it quotes it: not a secret, and nobody's business.
var masked = lazy.Regexp(`\S*\*{3,}\S*`)

// TroubleOf is what a call failed with, as it is told to people. It looks through what only says that nothing else is left.
func TroubleOf(err error) workspace.Trouble {
	e := root(err)
	if e == nil {
		return workspace.Trouble{}
	}
	said := masked().ReplaceAllString(workspace.Visible(strings.Join(strings.Fields(e.Said), " ")), "[redacted]")
	return workspace.Trouble{Model: e.Model, Kind: string(e.Kind), Status: e.Status, Said: workspace.Line(said, maxSaid)}
}

// root is the failure of a model behind an error of a chain; nil: there is none.
func root(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Kind {
	case Cancelled:
		if e.Last == nil {
			return nil
		}
		return root(e.Last)
	case NoneLeft, CoolDown:
		if inner := root(e.Err); inner != nil {
			return inner
		}
	}
	return e
}

// Problem is a trouble in a few words: error 500 from claude: `upstream exploded`.
func Problem(t workspace.Trouble) string {
	name := t.Model
	if name == "" {
		name = "the model"
	}
	var s string
	switch Kind(t.Kind) {
	case TimedOut:
		s = name + " did not answer in time"
	case Cut:
		s = "the connection to " + name + " broke off in the middle of an answer"
	case Malformed:
		s = "the answer of " + name + " cannot be read"
	case CoolDown:
		s = name + " has failed too often just now and is not asked"
	case Crowded:
		s = "all places at " + name + " were taken"
	case Overload:
		s = name + " cannot be reached"
	default:
		s = "error from " + name
	}
	if t.Status != 0 && Kind(t.Kind) != TimedOut {
		s = fmt.Sprintf("error %d from %s", t.Status, name)
	}
	if t.Said == "" {
		return s
	}
	return s + ": `" + strings.ReplaceAll(t.Said, "`", "'") + "`" // a stranger's words: no markup of theirs
}

// Progress is what a trouble has people wait for.
func Progress(t workspace.Trouble) string {
	wait := (t.Wait + time.Second - 1) / time.Second
	switch {
	case t.Next != "":
		return Problem(t) + "; asking " + t.Next
	case t.Stated && t.Status != 0:
		return fmt.Sprintf("%s asks to wait %d s (%d)", t.Model, wait, t.Status)
	case t.Stated:
		return fmt.Sprintf("%s asks to wait %d s", t.Model, wait)
	}
	return fmt.Sprintf("%s; next try in %d s", Problem(t), wait)
}

// Problems is why a chain had nothing left: of each model what it failed with last, at most three.
func Problems(err error) string {
	list := []string{Problem(TroubleOf(err))}
	var e *Error
	if errors.As(err, &e) && e.Kind == NoneLeft {
		for _, other := range e.Others {
			if text := Problem(TroubleOf(other)); len(list) < 3 && text != list[0] {
				list = append(list, text)
			}
		}
	}
	return strings.Join(list, "; ")
}
