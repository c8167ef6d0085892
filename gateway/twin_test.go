package gateway_test

import (
	"context"
	"errors"
	"time"

	"parley/channels"
	"parley/gateway/control"
	verbs "parley/gateway/control/operator"
	"parley/workspace"
)

// twin is a channel of a network that tells its account only when it is connected.
type twin struct {
	name    string
	account channels.AccountID
	intakes chan channels.Intake
	ended   chan string
}

func (c *twin) Account() channels.AccountID { return c.account }

func (c *twin) Run(ctx context.Context, in channels.Intake) error {
	in.Report(channels.Status{State: channels.Ready})
	c.intakes <- in
	<-ctx.Done()
	c.ended <- c.name
	return nil
}

func (c *twin) Send(context.Context, channels.Post) (channels.MessageID, error) {
	return "", &channels.Error{Class: channels.BadMessage, Err: errors.New("nobody is there")}
}

// twins are two channels of one account; the second connects when it is told to.
type twins struct {
	one, two *twin
	gate     chan struct{}
	ended    chan string
}

func newTwins() *twins {
	ended := make(chan string, 2)
	made := func(name string) *twin {
		return &twin{name: name, account: "bot", intakes: make(chan channels.Intake, 1), ended: ended}
	}
	return &twins{one: made("one"), two: made("two"), gate: make(chan struct{}), ended: ended}
}

func (*twins) more() string {
	return ", {name: one, type: twins, access: {dm: open}}, {name: two, type: twins, access: {dm: open}}"
}

func (s *twins) factory() channels.Factory {
	return channels.Factory{Network: "twins", Options: func() any { return &struct{}{} }, New: func(name string, _ any, _ channels.Deps) (channels.Channel, error) {
		if name == "two" {
			return &late{twin: s.two, after: s.gate}, nil
		}
		return s.one, nil
	}}
}

// Two channels that turn out to be one account: the first keeps it, the other ends, takes nothing in, and says why.
func secondOfOneAccountIsRefused(r *rig, same *twins) {
	in := receive(r.t, same.one.intakes, "the first channel")
	close(same.gate)
	if got := receive(r.t, same.ended, "the end of the second"); got != "two" {
		r.t.Fatalf("%s ended", got)
	}
	hello := channels.Inbound{Key: "m:1:1", Kind: channels.KindMessage, ID: "1", Text: "hello", From: channels.Sender{User: "7"}, Time: time.Now(),
		To: channels.Address{Network: "twins", Account: "bot", Kind: channels.DM, Peer: "1"}}
	if err := receive(r.t, same.two.intakes, "the second channel").Receive(r.t.Context(), hello); err == nil {
		r.t.Error("the second channel took a message")
	}
	if err := in.Receive(r.t.Context(), hello); err != nil {
		r.t.Errorf("the first channel: %v", err)
	}
	call := control.Call{Actor: workspace.Actor{Person: "local", Role: workspace.Owner}}
	r.logged("channel one has the same account", 1)
	ch, err := verbs.ShowChannel.Call(r.t.Context(), r.g.Control().Operator, call, verbs.ByChannel{Name: "two"})
	if err != nil || ch.State != channels.Failed || ch.Hint == "" {
		r.t.Errorf("the second is %+v, %v", ch, err)
	}
	if ch, err := verbs.ShowChannel.Call(r.t.Context(), r.g.Control().Operator, call, verbs.ByChannel{Name: "one"}); err != nil || ch.State != channels.Ready {
		r.t.Errorf("the first is %+v, %v", ch, err)
	}
}

// late is a twin that connects when it is told to.
type late struct {
	*twin
	after chan struct{}
}

func (c *late) Run(ctx context.Context, in channels.Intake) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.after:
	}
	return c.twin.Run(ctx, in)
}
