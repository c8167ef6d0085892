package gateway_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway"
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

// Two channels that turn out to be one account: the first keeps it, the other ends, takes nothing in, and says why.
func TestASecondChannelWithOneAccountIsRefused(t *testing.T) {
	t.Parallel()
	intakes, ended := make(chan channels.Intake, 1), make(chan string, 2)
	first := &twin{name: "one", account: "bot", intakes: intakes, ended: ended}
	second := &twin{name: "two", account: "bot", intakes: make(chan channels.Intake, 1), ended: ended}
	made := map[string]*twin{"one": first, "two": second}
	gate := make(chan struct{})
	r := newRig(t, setup{more: ", {name: one, type: twins, access: {dm: open}}, {name: two, type: twins, access: {dm: open}}", opt: func(o *gateway.Options) {
		o.Channels = append(append([]channels.Factory{}, o.Channels...), channels.Factory{Network: "twins", Options: func() any { return &struct{}{} },
			New: func(name string, _ any, _ channels.Deps) (channels.Channel, error) {
				if name == "two" {
					return &late{twin: made[name], after: gate}, nil
				}
				return made[name], nil
			}})
	}})
	in := receive(t, intakes, "the first channel")
	close(gate)
	if got := receive(t, ended, "the end of the second"); got != "two" {
		t.Fatalf("%s ended", got)
	}
	hello := channels.Inbound{Key: "m:1:1", Kind: channels.KindMessage, ID: "1", Text: "hello", From: channels.Sender{User: "7"}, Time: time.Now(),
		To: channels.Address{Network: "twins", Account: "bot", Kind: channels.DM, Peer: "1"}}
	if err := receive(t, second.intakes, "the second channel").Receive(t.Context(), hello); err == nil {
		t.Error("the second channel took a message")
	}
	if err := in.Receive(t.Context(), hello); err != nil {
		t.Errorf("the first channel: %v", err)
	}
	call := control.Call{Actor: workspace.Actor{Person: "local", Role: workspace.Owner}}
	r.logged("channel one has the same account", 1)
	ch, err := verbs.ShowChannel.Call(t.Context(), r.g.Control().Operator, call, verbs.ByChannel{Name: "two"})
	if err != nil || ch.State != channels.Failed || ch.Hint == "" {
		t.Errorf("the second is %+v, %v", ch, err)
	}
	if ch, err := verbs.ShowChannel.Call(t.Context(), r.g.Control().Operator, call, verbs.ByChannel{Name: "one"}); err != nil || ch.State != channels.Ready {
		t.Errorf("the first is %+v, %v", ch, err)
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
