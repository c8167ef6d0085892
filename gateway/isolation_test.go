package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway"
	verbs "parley/gateway/control/operator"
)

// sick is a channel of a network where something is wrong, which its name says.
type sick struct {
	name string
	runs atomic.Int64
	sent atomic.Int64
	news chan string // what it did
	free chan struct{}
}

func (c *sick) Account() channels.AccountID { return channels.AccountID("bot-" + c.name) }

func (c *sick) tell(what string) {
	select {
	case c.news <- c.name + " " + what:
	default: // the test has seen enough
	}
}

func (c *sick) Run(ctx context.Context, in channels.Intake) error {
	n := c.runs.Add(1)
	defer c.tell("ran")
	if c.name == "refused" {
		return &channels.Error{Class: channels.Fatal, Err: errors.New("the account is closed")}
	}
	in.Report(channels.Status{State: channels.Ready})
	hello := channels.Inbound{Key: "m:1:1", Kind: channels.KindMessage, ID: "1", Text: "hello", From: channels.Sender{User: "7"}, Time: time.Now(),
		To: channels.Address{Network: "sick", Account: c.Account(), Kind: channels.DM, Peer: "1"}}
	if err := in.Receive(ctx, hello); err != nil {
		return err
	}
	if c.name == "panics" {
		panic(fmt.Sprintf("run %d", n))
	}
	<-ctx.Done()
	return nil
}

func (c *sick) Send(ctx context.Context, _ channels.Post) (channels.MessageID, error) {
	n := c.sent.Add(1)
	c.tell("sent")
	switch c.name {
	case "chokes":
		panic(fmt.Sprintf("send %d", n))
	case "hangs":
		select {
		case <-ctx.Done():
		case <-c.free:
		}
		return "", ctx.Err()
	case "floods":
		return "", &channels.Error{Class: channels.Retry, After: time.Hour, Global: true, Err: errors.New("too fast")}
	}
	return "", &channels.Error{Class: channels.Fatal, Err: errors.New("the account is closed")}
}

// What is wrong with one channel, on one daemon with eight that are in trouble and two that are not.
func TestR05_ChannelsInTrouble(t *testing.T) {
	t.Parallel()
	bad, same, dc := newSicks(), newTwins(), newSecond(t)
	r := newRig(t, setup{more: bad.more() + same.more() + dc.more(), opt: func(o *gateway.Options) {
		o.Channels = append(slices.Clone(o.Channels), bad.factory(), same.factory())
	}})
	t.Cleanup(func() { close(bad.free) }) // before the gateway is stopped, which lets a send come to its end
	for _, part := range []struct {
		name string
		test func(*rig)
	}{
		{"R05_one that fails changes nothing for the others", func(r *rig) { oneFailsOthersAnswer(r, bad, dc) }},
		{"a second one with one account is refused", func(r *rig) { secondOfOneAccountIsRefused(r, same) }},
	} {
		t.Run(part.name, func(t *testing.T) {
			in := *r
			in.t = t
			part.test(&in)
		})
	}
}

// sicks are one of each kind.
type sicks struct {
	all  map[string]*sick
	news chan string
	free chan struct{}
}

func newSicks() *sicks {
	s := &sicks{all: map[string]*sick{}, news: make(chan string, 64), free: make(chan struct{})}
	for _, name := range []string{"panics", "refused", "chokes", "hangs", "floods"} {
		s.all[name] = &sick{name: name, news: s.news, free: s.free}
	}
	return s
}

func (s *sicks) more() string {
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		fmt.Fprintf(&list, ", {name: %s, type: sick, access: {dm: open}}", name)
	}
	return list.String()
}

func (s *sicks) factory() channels.Factory {
	return channels.Factory{Network: "sick", Options: func() any { return &struct{}{} },
		New: func(name string, _ any, _ channels.Deps) (channels.Channel, error) { return s.all[name], nil }}
}

// One channel that panics, one that is refused, one whose sends panic, one whose sends hang and one that is told to wait
// an hour: the others answer as if they were alone, and each tells what is wrong with it.
func oneFailsOthersAnswer(r *rig, bad *sicks, dc second) {
	dc.t = r.t
	all, news := bad.all, bad.news
	want := map[string]bool{"panics ran": true, "refused ran": true, "chokes sent": true, "hangs sent": true, "floods sent": true}
	for len(want) > 0 {
		delete(want, receive(r.t, news, fmt.Sprintf("all to fail; %v has not yet", want)))
	}
	r.logged("channel=dc state=ready", 1)
	ana := r.person(11)
	const n = 25
	for i := range n {
		r.say(ana, 11, fmt.Sprintf("question %d", i))
		if got := r.wait(ana, i+1)[i].Text; got != fmt.Sprintf("echo: question %d", i) {
			r.t.Errorf("answer %d is %q", i, got)
		}
		if got := dc.say(anaDiscordDM, anaOnDiscord, fmt.Sprintf("ask %d", i)); got != fmt.Sprintf("echo: ask %d", i) {
			r.t.Errorf("answer %d on Discord is %q", i, got)
		}
	}
	if got := len(r.tg.View().Sent(ana.ID)); got != n {
		r.t.Errorf("%d answers, want %d", got, n)
	}
	ctl := r.g.Control()
	for name, want := range map[string]channels.State{"tg": channels.Ready, "dc": channels.Ready, "refused": channels.Failed, "chokes": channels.Ready, "hangs": channels.Ready} {
		ch, err := verbs.ShowChannel.Call(r.t.Context(), ctl.Operator, operator(), verbs.ByChannel{Name: name})
		if err != nil || ch.State != want || want == channels.Failed && !strings.Contains(ch.Cause, "the account is closed") {
			r.t.Errorf("%s is %+v, %v; want %s", name, ch, err, want)
		}
	}
	if all["refused"].runs.Load() != 1 {
		r.t.Errorf("a refused account was tried %d times", all["refused"].runs.Load())
	}
	for all["panics"].runs.Load() < 2 { // it comes back, after a second
		receive(r.t, news, "a second run after the panic")
	}
	r.logged("channel panicked", 2)
	if got := all["floods"].sent.Load(); got != 1 {
		r.t.Errorf("a network that said to wait an hour was asked %d times", got)
	}
}
