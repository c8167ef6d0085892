package transport

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"parley/channels"
	"parley/configs"
)

// runner is a channel whose Runs a test ends one by one.
type runner struct {
	began chan struct{}
	end   chan error
}

func (r runner) Run(ctx context.Context, _ channels.Intake) error {
	r.began <- struct{}{}
	select {
	case err := <-r.end:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (runner) Send(context.Context, channels.Post) (channels.MessageID, error) { return "", nil }

// A channel that was linked while it ran stays down after a failure that is final; a link made then has it run again.
func TestLinkOfARunningChannelIsNotKeptForItsEnd(t *testing.T) {
	t.Parallel()
	r := runner{began: make(chan struct{}), end: make(chan error)}
	l := New(configs.Channel{Name: "wa", Type: "whatsapp"}, r, slog.New(slog.DiscardHandler), time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); l.Supervise(ctx, nil) }()
	defer func() { cancel(); <-over }()

	<-r.began
	l.Linked() // a login while it runs
	r.end <- &channels.Error{Class: channels.Fatal, Err: errors.New("another program uses this device's connection")}
	for l.View().State != channels.Failed {
		select {
		case <-r.began:
			t.Fatal("it runs again after a final failure")
		case <-time.After(time.Millisecond):
		}
	}
	if v := l.View(); v.Cause != "another program uses this device's connection" {
		t.Errorf("the cause is %q", v.Cause)
	}
	select {
	case <-r.began:
		t.Fatal("it runs again after a final failure")
	case <-time.After(100 * time.Millisecond):
	}
	l.Linked()
	select {
	case <-r.began:
	case <-time.After(20 * time.Second):
		t.Fatal("a new link does not have it run")
	}
}

// A channel whose adapter never tells an account ends the wait for another account's room.
func TestRoomOfAnUnknownAccountIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	l := &Channel{Network: "n", state: newState(time.Now())}
	l.state.wasUp = true
	close(l.state.up)
	ls := &Channels{}
	ls.Add(l)
	if _, ok := ls.Wait(t.Context(), nil, channels.Address{Network: "n", Account: "gone"}); ok {
		t.Error("found a channel of another account")
	}
}
