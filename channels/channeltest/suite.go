// Package channeltest is the suite that every network's adapter passes. A harness joins it to one adapter over a fake of
// its network; the table says what that network must be able to do.
//
// It is not a test of the gateway: splitting, retries, pacing and deduplication are not looked for here, only that an
// adapter leaves them alone.
//
// Goroutines: one per started adapter, which the suite waits for; goleak proves that the adapter left none.
package channeltest

import (
	"context"
	"testing"
	"time"

	"parley/channels"
)

// T is the part of *testing.T that a check uses.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Harness makes worlds of one network.
type Harness interface {
	Network() channels.Network
	World(t T) World
}

// World is a fake network with people and the bot's account in it. It is used by one check. Its methods are called from
// several goroutines.
type World interface {
	// Open makes the adapter as a starting process does. It is called once more for each restart.
	Open(d channels.Deps) (channels.Channel, error)
	// Close ends the network and lets go of everything that waits for it. A second Close does nothing.
	Close()

	// Account is the bot's own id, Secrets are texts that no error, log or status may hold.
	Account() channels.AccountID
	Secrets() []string
	// Address of a place as the adapter must give it; User is a person's id.
	Address(p Place) channels.Address
	User(w Who) channels.UserID

	// Act makes something happen. The id is of the message that came of it, as the adapter must name it. ok is false
	// when this harness cannot: the check counts as skipped.
	Act(e Event) (id channels.MessageID, ok bool)

	// Sent are the bot's messages that people see in a place, oldest first.
	Sent(p Place) []Seen
	// Reaction is the bot's reaction on a message.
	Reaction(p Place, id channels.MessageID) string
	// Typing counts how often the bot showed that it is typing there.
	Typing(p Place) int
	Menu() []channels.MenuItem
	// Acked says that the network regards the message as delivered and will not offer it to a new connection.
	Acked(p Place, id channels.MessageID) bool
	// Wait blocks until cond, which reads the methods above, holds.
	Wait(ctx context.Context, cond func() bool) error

	// Broken is markup that the network refuses; empty: it takes everything.
	Broken() string
}

// Place is where people talk.
type Place string

const (
	DM      Place = "dm"       // with Ana
	OtherDM Place = "other dm" // with Ben
	Group   Place = "group"    // the bot gets every message of it
	Thread  Place = "thread"   // a thread or topic; of a group where the network has such
	Echo    Place = "echo"     // a group or room where the network gives the bot its own messages back
)

// Who acts.
type Who string

const (
	Ana Who = "ana"
	Ben Who = "ben"
)

// Deed is what an Event does.
type Deed string

const (
	// Of people.
	Write    Deed = "write"    // Text, Mention, ReplyTo, Files (more than one: an album)
	EditIt   Deed = "edit"     // Target, Text
	DeleteIt Deed = "delete"   // Target
	ReactTo  Deed = "react"    // Target, Text is the emoji
	PressOn  Deed = "press"    // Target, Text is the value of the button
	Command  Deed = "command"  // Text is "/name arguments"; addressed to us; Mention: to another bot
	Garbage  Deed = "garbage"  // an event of a known kind that no adapter can read
	Fence    Deed = "fence"    // a message of Ana's by which the check sees that all before it has come
	MoveRoom Deed = "moveroom" // the group gets another id

	// Of the network.
	Flood     Deed = "flood"     // the next send is refused for After
	Trouble   Deed = "trouble"   // the next send gets a server error
	Swallow   Deed = "swallow"   // the next send is taken and never answered
	Block     Deed = "block"     // the place refuses the bot for ever
	Revoke    Deed = "revoke"    // the account is refused
	Down      Deed = "down"      // nobody listens any more
	Up        Deed = "up"        // … and again
	Cut       Deed = "cut"       // every connection is dropped
	Freeze    Deed = "freeze"    // everything is accepted and nothing answered
	Unlink    Deed = "unlink"    // the account forgets this device, which must log in again
	BadAnswer Deed = "badanswer" // the next send is refused with a page that is not the network's own format
)

// Event is something that happens.
type Event struct {
	Do      Deed
	Place   Place
	Who     Who
	Text    string
	Mention bool
	ReplyTo channels.MessageID
	Target  channels.MessageID
	Files   []File
	After   time.Duration
}

// File is an attachment as people see it.
type File struct {
	Kind, Name, MIME string
	Data             []byte
}

// Seen is one message of the bot as people see it, markup rendered.
type Seen struct {
	ID      channels.MessageID
	Text    string
	ReplyTo channels.MessageID
	Actions [][]channels.Action
	Files   []File

	// Previews says that a link in the text would be fetched and shown. Rings are those whom it calls beside who reads the
	// chat anyway, as the network names them: everyone, a role, single people.
	Previews bool
	Rings    []string
}

// check is one test of the suite. It belongs to one capability; its name begins with the id that it proves of the threat
// and reliability tables, if it proves one.
type check struct {
	name string
	of   Capability
	run  func(*rig)
}

// config is what tests of the suite itself change.
type config struct {
	needs    func(Capability) Need
	patience time.Duration // how long anything may take to happen
	brief    time.Duration // how long Run may take to return after its context ended
}

// Run takes the network's adapter through every check that the table asks for. It must not run beside parallel tests of
// the same package, since it looks for goroutines that are left.
func Run(t *testing.T, h Harness) {
	t.Helper()
	cfg := config{needs: Needs(h.Network()), patience: 20 * time.Second, brief: 3 * time.Second}
	if cfg.needs == nil {
		t.Fatalf("the capability table has no column for %q", h.Network())
	}
	runAll(t, h, cfg)
}

func runAll(t *testing.T, h Harness, cfg config) {
	t.Helper()
	var sum summary
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { sum.count(runOne(t, h, cfg, c)) })
	}
	t.Logf("%s: %d checks ran, %d not asked of this network, %d skipped", h.Network(), sum.ran, sum.absent, sum.skipped)
	if sum.skipped != 0 {
		t.Errorf("%d checks were skipped because the harness cannot do what they need", sum.skipped)
	}
}

type outcome int

const (
	ran outcome = iota
	absent
	skipped
)

type summary struct{ ran, absent, skipped int }

func (s *summary) count(o outcome) {
	switch o {
	case ran:
		s.ran++
	case absent:
		s.absent++
	case skipped:
		s.skipped++
	}
}

// runOne runs one check in a world of its own.
func runOne(t T, h Harness, cfg config, c check) outcome {
	t.Helper()
	need := cfg.needs(c.of)
	w := h.World(t)
	defer w.Close()
	r := newRig(t, w, cfg)
	defer r.end()
	if !r.open() {
		return ran
	}
	has := claims(r.ch, c.of)
	switch {
	case need == Absent && has == yes:
		t.Errorf("the adapter claims %q, which this network cannot do", c.of)
		return ran
	case need == Absent, need == Possible && has == no:
		return absent
	case has == no:
		t.Errorf("the adapter lacks %q, which this network must have", c.of)
		return ran
	}
	return runCheck(r, c)
}

func runCheck(r *rig, c check) (o outcome) {
	defer func() {
		v := recover()
		if deed, ok := v.(cannot); ok {
			r.t.Logf("skipped: the harness cannot %q", deed)
			o = skipped
		} else if v != nil {
			panic(v)
		}
	}()
	c.run(r)
	return ran
}

func checks() []check {
	var all []check
	all = append(all, receiveChecks()...)
	all = append(all, eventChecks()...)
	all = append(all, keyChecks()...)
	all = append(all, sendChecks()...)
	all = append(all, optionalChecks()...)
	all = append(all, failureChecks()...)
	return append(all, lifeChecks()...)
}
