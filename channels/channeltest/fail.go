package channeltest

import (
	"errors"
	"time"

	"parley/channels"
)

func failureChecks() []check {
	return []check{
		{"R05 a flood wait is retry", Failing, floodWait},
		{"a flood wait tells its time", FloodTimes, floodTime},
		{"R05 a swallowed answer is unknown and not repeated", Failing, swallowedAnswer},
		{"R05 a server error is unknown and not repeated", Failing, serverError},
		{"an answer in no format is unknown", Failing, noFormat},
		{"never connected is retry", Failing, neverConnected},
		{"a peer that is gone does not take the channel along", Failing, peerGone},
		{"a refused account is fatal", Failing, accountRefused},
	}
}

func asError(err error, e **channels.Error) bool { return errors.As(err, e) }

// class checks how a failure is classified.
func (r *rig) class(what string, err error, want channels.Class) {
	r.t.Helper()
	if err == nil {
		r.t.Errorf("%s succeeded, want %s", what, want)
		return
	}
	if got := channels.ClassOf(err); got != want {
		r.t.Errorf("%s is %s (%v), want %s", what, got, err, want)
	}
}

func floodWait(r *rig) {
	r.start()
	r.act(Event{Do: Flood, After: 7 * time.Second})
	p := r.post(DM, "too fast")
	_, err := r.trySend(p)
	r.class("send into a flood wait", err, channels.Retry)
	r.equal("messages seen", len(r.w.Sent(DM)), 0)
	r.send(p)
}

func floodTime(r *rig) {
	r.start()
	r.act(Event{Do: Flood, After: 7 * time.Second})
	_, err := r.trySend(r.post(DM, "too fast"))
	var e *channels.Error
	if !errors.As(err, &e) || e.After < 7*time.Second || e.After > 8*time.Second {
		r.t.Errorf("send into a flood wait gives %v, the network said 7s", err)
	}
}

// swallowedAnswer: the message is there, the answer is not. A second one would be a repetition.
func swallowedAnswer(r *rig) {
	r.start()
	r.act(Event{Do: Swallow})
	_, err := r.trySend(r.post(DM, "once only"))
	r.class("send without an answer", err, channels.Unknown)
	r.sees("the message", func() bool { return len(r.w.Sent(DM)) > 0 })
	if n := len(r.w.Sent(DM)); n != 1 {
		r.t.Errorf("people see the message %d times, want once", n)
	}
}

func serverError(r *rig) {
	r.start()
	r.act(Event{Do: Trouble})
	_, err := r.trySend(r.post(DM, "did it arrive?"))
	r.class("send with a server error", err, channels.Unknown)
	if n := len(r.w.Sent(DM)); n > 1 {
		r.t.Errorf("people see the message %d times", n)
	}
}

func noFormat(r *rig) {
	r.start()
	r.act(Event{Do: BadAnswer})
	_, err := r.trySend(r.post(DM, "did it arrive?"))
	r.class("send answered by an HTML page", err, channels.Unknown)
}

func neverConnected(r *rig) {
	r.start()
	r.goesDown()
	r.tr.CloseIdleConnections() // on one that is half closed a request may get lost: that would be unknown
	p := r.post(DM, "anybody there?")
	_, err := r.trySend(p)
	r.class("send with nobody listening", err, channels.Retry)
	r.act(Event{Do: Up})
	r.equal("messages seen", len(r.w.Sent(DM)), 0)
}

func peerGone(r *rig) {
	r.start()
	r.act(Event{Do: Block, Place: OtherDM})
	_, err := r.trySend(r.post(OtherDM, "hello?"))
	r.class("send to who blocked us", err, channels.PeerGone)
	r.send(r.post(DM, "still here"))
	r.message(DM, r.write(DM, Ana, "so am I"))
}

func accountRefused(r *rig) {
	r.start()
	r.act(Event{Do: Revoke})
	_, err := r.trySend(r.post(DM, "who am I?"))
	r.class("send without an account", err, channels.Fatal)
	late := time.NewTimer(r.cfg.patience)
	defer late.Stop()
	select {
	case err := <-r.ended:
		r.stopf()
		r.stopf = nil
		if err != nil {
			r.heard = append(r.heard, err.Error())
		}
		r.class("Run", err, channels.Fatal)
	case <-late.C:
		r.t.Fatalf("Run goes on although the account is refused")
	}
	if !r.in.state(channels.Failed) {
		r.t.Errorf("no status told that the account is refused")
	}
	for _, s := range r.in.reports() {
		if s.State == channels.Failed && s.Hint == "" {
			r.t.Errorf("the status %q says nothing of what to do", s.State)
		}
	}
}
