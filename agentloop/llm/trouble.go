// What people are told of a model that fails. Every sentence about it stands here.

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

// SilentAfter is how long a model may leave a call without a first byte before people are told.
const SilentAfter = 10 * time.Second

// masked is what a server leaves of a key when it quotes it: not a secret, and nobody's business.
var masked = lazy.Regexp(`\S*\*{3,}\S*`)

// TroubleOf is what a call failed with, as it is told to people. It looks through what only says that nothing else is left.
func TroubleOf(err error) workspace.Trouble {
	e := root(err)
	if e == nil {
		return workspace.Trouble{}
	}
	said := masked().ReplaceAllString(workspace.Visible(strings.Join(strings.Fields(e.Said), " ")), "[redacted]")
	return workspace.Trouble{Model: e.Model, Provider: e.Provider, Kind: string(e.Kind), Status: e.Status, Said: workspace.Line(said, maxSaid)}
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

// byStatus is what a model that answered with a status is said to do; others "answer" theirs.
var byStatus = map[int]string{
	400: "%s refuses the request (400)",
	401: "%s refuses the key (401)",
	403: "%s does not allow this key to use the model (403)",
	404: "%s does not know the model (404)",
	408: "%s did not answer in time (408)",
	422: "%s refuses the request (422)",
	429: "%s takes no more requests for now (429)",
	503: "%s is unavailable (503)",
	504: "%s did not answer in time (504)",
	529: "%s is overloaded (529)",
}

// byKind is what is said where there was no status.
var byKind = map[Kind]string{
	Auth:      "%s refuses the key",
	Limited:   "%s takes no more requests for now",
	Overload:  "%s cannot be reached",
	Cut:       "the connection to %s broke off in the middle of an answer",
	Rejected:  "%s refuses the request",
	Malformed: "the answer of %s cannot be read",
	TimedOut:  "%s did not answer in time",
	CoolDown:  "%s has failed too often just now and is not asked",
	Crowded:   "all places at %s are taken",
}

// unpaid is what is said of an account that may spend no more, whatever the status.
const unpaid = "the account at %s has no credit left"

// Who is what people call a model that is asked: its provider, or else its own name.
func (i Info) Who() string { return who(i.Provider, i.Name) }

func who(provider, model string) string {
	switch {
	case provider != "":
		return provider
	case model != "":
		return model
	}
	return "the model"
}

// Problem is a trouble in a few words: OpenAI answers 500: `upstream exploded`.
func Problem(t workspace.Trouble) string {
	s := fmt.Sprintf(sentence(t), who(t.Provider, t.Model))
	if t.Said == "" {
		return s
	}
	return s + ": `" + strings.ReplaceAll(t.Said, "`", "'") + "`" // a stranger's words: no markup of theirs
}

// sentence has one %s, for who fails.
func sentence(t workspace.Trouble) string {
	kind := Kind(t.Kind)
	switch {
	case kind == Auth && t.Status != 0 && t.Status != 401 && t.Status != 403:
		return fmt.Sprintf("%s (%d)", unpaid, t.Status)
	case t.Status == 0 || kind == TimedOut:
		if s, ok := byKind[kind]; ok {
			return s
		}
		return "%s fails"
	}
	if s, ok := byStatus[t.Status]; ok {
		return s
	}
	return fmt.Sprintf("%%s answers %d", t.Status)
}

// Progress is what a trouble has people wait for.
func Progress(t workspace.Trouble) string {
	wait := (t.Wait + time.Second - 1) / time.Second
	switch {
	case t.Next != "":
		return Problem(t) + "; asking " + t.Next
	case t.Stated && t.Status != 0:
		return fmt.Sprintf("%s asks to wait %d s (%d)", who(t.Provider, t.Model), wait, t.Status)
	case t.Stated:
		return fmt.Sprintf("%s asks to wait %d s", who(t.Provider, t.Model), wait)
	}
	return fmt.Sprintf("%s; next try in %d s", Problem(t), wait)
}

// Asked is a model that was asked and has sent nothing yet; the zero value: none was.
type Asked struct {
	Info
	Since time.Time
}

// Lasted is for how long it has sent nothing.
func (a Asked) Lasted(now time.Time) time.Duration {
	if a.Since.IsZero() {
		return 0
	}
	return now.Sub(a.Since)
}

// Trouble is its failure when nobody waits for it any more.
func (a Asked) Trouble() workspace.Trouble {
	return workspace.Trouble{Model: a.Name, Provider: a.Provider, Kind: string(TimedOut), Failures: 1}
}

// Silence is said of a model that has been asked and sends nothing.
func Silence(who string, lasted time.Duration) string {
	return fmt.Sprintf("no answer from %s for %d s", who, lasted/time.Second)
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

// endings are the sentences with which a turn ends that no model answered, by what it failed with in the end; %s is Problems.
var endings = map[Kind]string{
	Auth:      "I couldn't use the model: %s. Tell the owner.",
	Limited:   "I couldn't use the model: %s. Try again later.",
	Overload:  "I couldn't reach the model: %s. Try again in a few minutes.",
	CoolDown:  "I couldn't reach the model: %s. Try again in a few minutes.",
	NoneLeft:  "I couldn't reach the model: %s. Try again in a few minutes.",
	TimedOut:  "I couldn't reach the model: %s. Try again in a few minutes.",
	Rejected:  "I couldn't use the model: %s. Tell the owner.",
	Cut:       "I couldn't get an answer: %s. Please try again.",
	Malformed: "I couldn't get an answer: %s. Please try again.",
}

// Ending is the sentence with which a turn ends that failed so; empty: there is none for it.
func Ending(err error) string {
	s, ok := endings[Cause(err)]
	if !ok {
		return ""
	}
	why := Problems(err)
	var e *Error
	if errors.As(err, &e) && e.Failures > 1 {
		why += fmt.Sprintf(" (%d tries)", e.Failures)
	}
	if Cause(err) == Limited && e.After > 0 {
		why += fmt.Sprintf(", and it asks to wait %s", e.After.Round(time.Second))
	}
	return fmt.Sprintf(s, why)
}
