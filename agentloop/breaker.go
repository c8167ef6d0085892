package agentloop

import (
	"fmt"

	"github.com/gowebpki/jcs"

	"parley/workspace"
)

// breaker ends what goes round in circles: the same call again and again, a tool that only fails, and a model that does
// not listen to either. It is made again from the journal after a crash.
type breaker struct {
	made    map[string]int // how often a call was wanted, by its tool and canonical arguments
	fails   map[string]int // failures of a tool since anything last succeeded
	refused int            // calls that it refused
}

// Rules by which it refuses, as the journal has them.
const (
	ruleRepeat = "built-in: repeat"
	ruleFails  = "built-in: failing"
)

func newBreaker() breaker { return breaker{made: map[string]int{}, fails: map[string]int{}} }

// wanted counts a call, however it is spelt, and says how often this one was wanted.
func (b *breaker) wanted(c workspace.Content) int {
	args, err := jcs.Transform(c.Args)
	if err != nil { // it is refused for its arguments
		args = c.Args
	}
	key := c.Name + "\x00" + string(args)
	b.made[key]++
	return b.made[key]
}

// saw takes the end of a call.
func (b *breaker) saw(c *call) {
	switch {
	case c.step.Body.Reason == ruleRepeat || c.step.Body.Reason == ruleFails:
		b.refused++
	case c.step.State == workspace.StepDone && !failed(c.result):
		clear(b.fails)
	default:
		b.fails[c.Name]++
	}
}

func failed(result []workspace.Content) bool {
	return len(result) > 0 && result[0].Error
}

// refuses is the rule and the sentence for a call that must not run again; empty: it may.
func (b *breaker) refuses(c *call, l Limits) (rule, said string) {
	switch {
	case c.nth > l.Repeats:
		return ruleRepeat, fmt.Sprintf("Refused: you made this very call %d times in this turn. Do something else, or answer.", c.nth-1)
	case b.fails[c.Name] >= l.Failures:
		return ruleFails, fmt.Sprintf("Refused: %s failed %d times in a row in this turn. Do something else, or answer and say what does not work.",
			workspace.Line(c.Name, 40), b.fails[c.Name])
	}
	return "", ""
}

// spent says that the model goes on in spite of it: the turn ends.
func (b *breaker) spent(l Limits) bool { return b.refused >= l.Trips }
