package conversation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agentloop/lane"
	"parley/gateway/control"
	"parley/gateway/snapshot"
	"parley/workspace"
	"parley/workspace/clip"
)

// QueueView is what waits in a session and how it is handled.
type QueueView struct {
	lane.Settings
	Running bool
	Waiting []string
	Changed bool
	Held    string // why the turn has not begun, or is suspended
}

// ShowQueue shows what waits, and how it is handled.
var ShowQueue = control.Verb[*Conversations, struct{}, QueueView]{
	Name: "status", Help: "Show what waits in a session", Rights: mayLook, Chat: "queue", Say: QueueView.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, _ struct{}) (QueueView, error) {
		v := c.queue(call)
		return v, c.Answer(call, v)
	},
}

func (c *Conversations) queue(call control.Call) QueueView {
	key := call.Session.String()
	lv := c.Lanes.Lane(key)
	v := QueueView{Settings: c.Lanes.Queue(key), Running: lv.Running}
	for _, in := range lv.Waiting {
		if call.Owner() || in.Person == call.Actor.Person {
			v.Waiting = append(v.Waiting, in.Text)
		}
	}
	return v
}

// QueueIn is what is changed of a queue; what is left out stays as it is.
type QueueIn struct {
	Mode     string `json:"mode,omitempty" help:"steer, followup, collect or interrupt; default: forget all changes"`
	Debounce string `json:"debounce,omitempty" help:"a *time* up to a minute"`
	Cap      int    `json:"cap,omitempty" help:"how many *messages* may wait, 1 to 1,000"`
	Drop     string `json:"drop,omitempty" help:"summarize, old or new"`
}

// SetQueue changes how messages during a turn are handled in a session.
var SetQueue = control.Verb[*Conversations, QueueIn, QueueView]{
	Name: "queue", Help: "Change how messages during a turn are handled", Rights: mayChange,
	Chat:  "queue [steer|followup|collect|interrupt|default] [debounce:<time>] [cap:<number>] [drop:summarize|old|new]",
	Parse: parseQueue, Say: QueueView.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, in QueueIn) (QueueView, error) {
		if err := in.check(); err != nil {
			return QueueView{}, err
		}
		v := c.queue(call)
		v.Changed = true
		return v, c.override(call, in.apply, func(o workspace.Overrides) any {
			v.Settings = snapshot.QueueSettings(c.Snapshot().Queue, o)
			return v
		})
	},
}

// parseQueue reads a mode and options in any order.
func parseQueue(words []string) (q QueueIn, err error) {
	for _, word := range words {
		name, value, option := strings.Cut(strings.ToLower(word), ":")
		switch {
		case option && value != "" && name == "debounce" && q.Debounce == "":
			q.Debounce = value
		case option && name == "cap" && q.Cap == 0:
			if q.Cap, err = strconv.Atoi(value); err != nil || q.Cap < 1 {
				return q, control.NotTaken(word)
			}
		case option && value != "" && name == "drop" && q.Drop == "":
			q.Drop = value
		case !option && name != "" && q.Mode == "":
			q.Mode = name
			if name == "reset" {
				q.Mode = "default"
			}
		default:
			return q, control.NotTaken(word)
		}
	}
	return q, q.check()
}

// maxDebounce and maxCap bound what a person may set.
const (
	maxDebounce = time.Minute
	maxCap      = 1000
)

// check says in one sentence what cannot be.
func (q QueueIn) check() error {
	switch q.Mode {
	case "", lane.Steer, lane.Followup, lane.Collect, lane.Interrupt, "default":
	default:
		return workspace.Say(workspace.ErrInvalid,
			"There is no queue mode %q. Modes are steer, followup, collect, interrupt and default.", clip.Runes(q.Mode, 40))
	}
	if d, err := time.ParseDuration(q.Debounce); q.Debounce != "" && (err != nil || d < 0 || d > maxDebounce) {
		return workspace.Say(workspace.ErrInvalid, "debounce is a time such as 700ms or 2s, at most %s.", maxDebounce)
	}
	if q.Cap < 0 || q.Cap > maxCap {
		return workspace.Say(workspace.ErrInvalid, "cap is a number of messages from 1 to %d.", maxCap)
	}
	if q.Drop != "" && !slices.Contains([]string{"summarize", "old", "new"}, q.Drop) {
		return workspace.Say(workspace.ErrInvalid, "drop is summarize, old or new.")
	}
	return nil
}

func (q QueueIn) apply(o *workspace.Overrides) {
	if q.Mode == "default" {
		o.Queue, o.Debounce, o.Cap, o.Drop = "", "", 0, ""
	} else if q.Mode != "" {
		o.Queue = q.Mode
	}
	if q.Debounce != "" {
		o.Debounce = q.Debounce
	}
	if q.Cap > 0 {
		o.Cap = q.Cap
	}
	if q.Drop != "" {
		o.Drop = q.Drop
	}
}

func (v QueueView) say() string {
	head := "Queue mode is"
	if v.Changed {
		head = "Queue mode is now"
	}
	s := fmt.Sprintf("%s **%s**: at most %d wait, beyond that %s; what comes within %s joins the message before.", head, v.Mode, v.Cap,
		overflowText(v.Overflow), v.Debounce)
	if v.Held != "" { // what it was asked with is taken out of the queue
		s += "\nThe turn has not begun, or is suspended: " + v.Held + "."
	}
	if len(v.Waiting) == 0 {
		return s + "\nNothing waits."
	}
	s += fmt.Sprintf("\n%s:", workspace.Plural(len(v.Waiting), "message"))
	for _, w := range v.Waiting {
		line, _, _ := strings.Cut(w, "\n")
		s += "\n- " + clip.Runes(line, 61)
	}
	return s
}

func overflowText(mode string) string {
	switch mode {
	case "old":
		return "the oldest is dropped"
	case "new":
		return "the newest is dropped"
	}
	return "a line of each is kept"
}
