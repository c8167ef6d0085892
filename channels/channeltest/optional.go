package channeltest

import (
	"context"
	"slices"
	"time"

	"parley/channels"
)

func optionalChecks() []check {
	return []check{
		{"the menu shows the commands", Menu, menuShown},
		{"a stream grows and is never rewritten", Streaming, streamGrows},
		{"R05 a post that may have been sent is not doubled", AfterCrash, notDoubled},
		{"history gives the root and the last messages", History, historyGives},
		{"login shows the steps", Login, loginSteps},
		{"a check finds a working account", Checking, checkWorks},
		{"a check finds a refused account", Checking, checkRefused},
	}
}

func menuShown(r *rig) {
	r.start()
	m, _ := channels.As[channels.MenuPublisher](r.ch)
	items := []channels.MenuItem{{Name: "new", Help: "start a fresh session"}, {Name: "stop", Help: "stop the running turn"}}
	if err := r.call(func(ctx context.Context) error { return m.PublishMenu(ctx, items) }); err != nil {
		r.t.Fatalf("PublishMenu: %v", err)
	}
	r.equal("menu", r.w.Menu(), items)
}

func streamGrows(r *rig) {
	r.start()
	s, _ := channels.As[channels.Streamer](r.ch)
	var id channels.MessageID
	var early []string
	err := r.call(func(ctx context.Context) error {
		st, err := s.Stream(ctx, r.post(DM, "one"))
		if err != nil {
			return err
		}
		id = st.ID()
		early = append(early, r.shown(DM, id).Text)
		if err := st.Append(ctx, " two"); err != nil {
			return err
		}
		early = append(early, r.shown(DM, id).Text)
		return st.Close(ctx, " three")
	})
	if err != nil {
		r.t.Fatalf("stream: %v", err)
	}
	r.equal("text at each step", append(early, r.shown(DM, id).Text), []string{"one", "one two", "one two three"})
}

// notDoubled: the network dedupes by the token, or can be asked for it.
func notDoubled(r *rig) {
	r.start()
	since := time.Now().Add(-time.Minute)
	p := r.post(DM, "exactly once")
	r.act(Event{Do: Swallow})
	_, err := r.trySend(p)
	r.class("send without an answer", err, channels.Unknown)
	r.sees("the message", func() bool { return len(r.w.Sent(DM)) > 0 })
	r.restart()
	f, finds := channels.As[channels.Finder](r.ch)
	if !finds {
		r.send(p) // Idempotent: the same token is the same message
	} else {
		r.found(f, p, since, true)
		other := p
		other.Token += "-never-sent"
		r.found(f, other, since, false)
	}
	if n := len(r.w.Sent(DM)); n != 1 {
		r.t.Errorf("people see the message %d times, want once", n)
	}
}

func (r *rig) found(f channels.Finder, p channels.Post, since time.Time, want bool) {
	r.t.Helper()
	err := r.call(func(ctx context.Context) error {
		id, found, sure, err := f.Find(ctx, p, since)
		if found != want || (found && id == "") || (!found && !sure) {
			r.t.Errorf("Find gave id %q, found %v, sure %v; want found %v", id, found, sure, want)
		}
		return err
	})
	if err != nil {
		r.t.Errorf("Find: %v", err)
	}
}

func historyGives(r *rig) {
	r.start()
	h, _ := channels.As[channels.Historian](r.ch)
	var want []channels.MessageID
	for _, text := range []string{"root", "one", "two", "three"} {
		id := r.write(Thread, Ana, text)
		r.message(Thread, id)
		want = append(want, id)
	}
	var got []channels.MessageID
	err := r.call(func(ctx context.Context) error {
		list, err := h.History(ctx, r.w.Address(Thread), 2)
		for _, in := range list {
			got = append(got, in.ID)
		}
		return err
	})
	if err != nil {
		r.t.Fatalf("History: %v", err)
	}
	// The root is the first message, or what the network makes a thread of.
	if len(got) != 3 || slices.Contains(want[1:], got[0]) || !slices.Equal(got[1:], want[2:]) {
		r.t.Errorf("history of 2 is %v, want the root and %v", got, want[2:])
	}
}

// loginSteps: a device that is not linked shows a code before anything else, and is linked afterwards.
func loginSteps(r *rig) {
	r.act(Event{Do: Unlink})
	l, _ := channels.As[channels.Linker](r.ch)
	var steps []channels.LoginStep
	err := r.call(func(ctx context.Context) error {
		return l.Login(ctx, channels.LoginHow{}, func(s channels.LoginStep) { steps = append(steps, s) })
	})
	if err != nil {
		r.t.Fatalf("Login: %v", err)
	}
	if len(steps) == 0 || steps[0].QR == "" || steps[0].Expires.IsZero() {
		r.t.Errorf("the steps %+v do not begin with a QR code that expires", steps)
	}
	r.start()
	r.talks("linked")
}

func (r *rig) findings() []channels.Finding {
	c, _ := channels.As[channels.Checker](r.ch)
	ctx, cancel := context.WithTimeout(r.t.Context(), r.cfg.patience)
	defer cancel()
	list := c.Check(ctx)
	for _, f := range list {
		r.heard = append(r.heard, f.What, f.Hint)
	}
	return list
}

func checkWorks(r *rig) {
	list := r.findings()
	if len(list) == 0 {
		r.t.Errorf("no findings")
	}
	for _, f := range list {
		if !f.OK {
			r.t.Errorf("a working account has the finding %+v", f)
		}
	}
}

func checkRefused(r *rig) {
	r.act(Event{Do: Revoke})
	for _, f := range r.findings() {
		if !f.OK && f.Hint != "" {
			return
		}
	}
	r.t.Errorf("no finding tells that the account is refused, and what to do")
}
