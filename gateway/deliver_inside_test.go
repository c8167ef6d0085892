package gateway

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
)

// R05: a network that is away for longer than a dozen tries take loses no answer.
func TestR05_OutageOfTheNetworkIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	d := &deliver{now: time.Now}
	young := &workspace.Outbound{Created: time.Now().Add(-time.Hour)}
	if d.enough(young, 100) {
		t.Error("an answer of an hour is given up")
	}
	if old := (&workspace.Outbound{Created: time.Now().Add(-25 * time.Hour)}); d.enough(old, maxTries-1) || !d.enough(old, maxTries) {
		t.Error("an answer of 25 hours is not given up after the last try")
	}
}

// A part as long as the network allows can still go once more with the mark before it.
func TestR05_MarkedRepeatOfAFullPartFits(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	limit := p.Traits().MaxUnits
	var tries atomic.Int32
	p.send = func(post channels.Post) (channels.MessageID, error) {
		switch {
		case len([]rune(post.Plain)) > limit:
			return "", &channels.Error{Class: channels.BadMessage, Err: errors.New("too long")}
		case tries.Add(1) == 1:
			return "", &channels.Error{Class: channels.Unknown, Err: errors.New("cut")}
		}
		return "", nil
	}
	startPuppets(t, "{dm: open}", "", nil, p)
	p.hear(p.says("7", "1", strings.Repeat("long ", 2000)))
	if got := p.next(); !strings.HasPrefix(got, transport.RepeatMark) || len(got) < limit/2 {
		t.Errorf("the repeat is %.60q of %d", got, len(got))
	}
}

// An adapter that panics costs the one message a doubt, and an answer that cannot be rendered is not tried for ever.
func TestPanicInAnAdapterIsADoubt(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	var tries atomic.Int32
	p.send = func(channels.Post) (channels.MessageID, error) {
		if tries.Add(1) == 1 {
			panic("adapter")
		}
		return "", nil
	}
	startPuppets(t, "{dm: open}", "", nil, p)
	p.hear(p.says("7", "1", "hello"))
	if got := p.next(); !strings.HasPrefix(got, transport.RepeatMark) {
		t.Errorf("sent %q", got)
	}
}

// Dropping a part that may have been sent does not drop what comes behind it.
func TestDroppedDoubtLosesNoFurtherPart(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	var tries atomic.Int32
	p.send = func(channels.Post) (channels.MessageID, error) {
		if tries.Add(1) == 1 {
			return "", &channels.Error{Class: channels.Unknown, Err: errors.New("cut")}
		}
		return "", nil
	}
	g := startPuppets(t, "{dm: open}", "replies: {maybe_sent: drop}", nil, p)
	p.hear(p.says("7", "1", strings.Repeat("word ", 1500)))
	p.next()
	if got := query(t, g, `SELECT n, state FROM parts ORDER BY n LIMIT 1`); got[0] != "0|dead" {
		t.Errorf("parts %q", got)
	}
}
