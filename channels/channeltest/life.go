package channeltest

import (
	"context"

	"parley/channels"
)

func lifeChecks() []check {
	return []check{
		{"a dropped connection is made again", Living, reconnects},
		{"a network that was away is found again", Living, comesBack},
		{"no connection is no end of Run", Living, startsDown},
		{"R14 cancel ends an idle adapter", Living, cancelIdle},
		{"cancel ends an adapter whose offer is open", Living, cancelInReceive},
		{"cancel ends an adapter that nobody answers", Living, cancelFrozen},
		{"T03 no secret is told", Living, noSecret},
		{"traits are sane", Living, saneTraits},
	}
}

func (r *rig) talks(text string) {
	r.t.Helper()
	r.message(DM, r.write(DM, Ana, text))
	r.shown(DM, r.send(r.post(DM, "re: "+text)))
}

func reconnects(r *rig) {
	r.start()
	r.talks("before")
	r.act(Event{Do: Cut})
	r.message(DM, r.write(DM, Ana, "after the cut"))
}

func comesBack(r *rig) {
	r.start()
	r.talks("before")
	r.goesDown()
	r.act(Event{Do: Up})
	r.message(DM, r.write(DM, Ana, "after the night"))
	r.until("ready to be told last", func() bool {
		all := r.in.reports()
		return all[len(all)-1].State == channels.Ready
	})
}

// goesDown takes the network away and waits until the adapter has told of it.
func (r *rig) goesDown() {
	r.t.Helper()
	reports, failures := len(r.in.reports()), len(r.in.failures())
	r.act(Event{Do: Down})
	r.until("the loss of the connection to be told", func() bool {
		for _, s := range r.in.reports()[reports:] {
			if s.State != channels.Ready {
				return true
			}
		}
		return len(r.in.failures()) > failures
	})
}

func startsDown(r *rig) {
	r.act(Event{Do: Down})
	r.launch()
	r.until("a status or an error that tells of the trouble", func() bool {
		return len(r.in.reports()) > 0 || len(r.in.failures()) > 0
	})
	r.act(Event{Do: Up})
	r.until("ready", func() bool { return r.in.state(channels.Ready) })
	r.talks("at last")
}

func cancelIdle(r *rig) {
	r.start()
	r.talks("hello")
	r.stop()
}

func cancelInReceive(r *rig) {
	r.start()
	r.in.decide(func(ctx context.Context, _ int, _ []channels.Inbound) error {
		<-ctx.Done()
		return ctx.Err()
	})
	r.write(DM, Ana, "wait for me")
	r.until("an open offer", func() bool { return len(r.in.offered()) > 0 })
	r.stop()
}

func cancelFrozen(r *rig) {
	r.start()
	r.talks("hello")
	r.act(Event{Do: Freeze})
	r.act(Event{Do: Cut}) // whatever it asks next is never answered
	r.stop()
}

// noSecret makes the adapter fail in every way that puts addresses and headers into errors.
func noSecret(r *rig) {
	r.start()
	r.talks("hello")
	r.act(Event{Do: Swallow})
	_, err := r.trySend(r.post(DM, "swallowed"))
	r.class("swallowed send", err, channels.Unknown)
	r.act(Event{Do: Down})
	if _, err := r.trySend(r.post(DM, "down")); err == nil {
		r.t.Errorf("send succeeded with nobody listening")
	}
	r.act(Event{Do: Up})
	r.message(DM, r.write(DM, Ana, "back"))
	r.act(Event{Do: Trouble})
	if _, err := r.trySend(r.post(DM, "trouble")); err == nil {
		r.t.Errorf("send succeeded in spite of a server error")
	}
	r.act(Event{Do: Revoke})
	if _, err := r.trySend(r.post(DM, "revoked")); err == nil {
		r.t.Errorf("send succeeded without an account")
	}
	r.checkSecrets()
}

func saneTraits(r *rig) {
	tr := traitsOf(r.ch)
	if tr.MaxUnits > 0 && tr.Unit == "" {
		r.t.Errorf("MaxUnits %d of no unit", tr.MaxUnits)
	}
	if tr.Dialect == "" {
		r.t.Errorf("no dialect")
	}
	if _, edits := channels.As[channels.Editor](r.ch); edits && tr.EditEvery <= 0 {
		r.t.Errorf("edits without a pace: EditEvery is 0")
	}
	if tr.EditGroup != 0 && tr.EditGroup < tr.EditEvery {
		r.t.Errorf("groups may be edited faster (%v) than DMs (%v)", tr.EditGroup, tr.EditEvery)
	}
}
