package whatsapp_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley/channels"
	"parley/channels/whatsapp/whatsapptest"
)

func (r *rig) groupJID() types.JID { return types.NewJID(groupID, types.GroupServer) }

// login links with a scanned code, or a typed one.
func (r *rig) login(phone string) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	return r.ch.Login(ctx, channels.LoginHow{Phone: phone}, func(s channels.LoginStep) {
		var err error
		switch {
		case s.QR != "":
			err = r.net.Scan(s.QR)
		case s.Code != "":
			err = r.net.EnterCode(s.Code)
		}
		if err != nil {
			r.t.Error(err)
		}
	})
}

func TestUnlinkedChannelSaysSoAndIsLinkedWhileItRuns(t *testing.T) {
	t.Parallel()
	for _, phone := range []string{"", "+49 151 1234-0000"} {
		r := newRig(t, false)
		r.run()
		r.in.until(t, "needs", func() bool { return r.in.last().State == channels.Needs })
		if s := r.in.last(); !strings.Contains(s.Hint, "parley channel login wa") {
			t.Errorf("hint %q", s.Hint)
		}
		if r.ch.Account() != "" {
			t.Errorf("account %q without a link", r.ch.Account())
		}
		if err := r.login(phone); err != nil {
			t.Fatal(err)
		}
		r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
		r.net.Write(whatsapptest.In{From: ana.Phone, Text: "hello"})
		r.in.text(t, "hello")
		if string(r.ch.Account()) != r.account() {
			t.Errorf("account %q", r.ch.Account())
		}
		if err := r.login(""); channels.ClassOf(err) != channels.BadMessage {
			t.Errorf("a second login: %v", err)
		}
		for _, name := range []string{"wa-wa.db", "wa-wa.db-wal", "wa-wa.lock"} {
			if info, err := os.Stat(filepath.Join(r.dir, name)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", name, info.Mode(), err)
			}
		}
		if strings.Contains(r.log.String(), r.net.Account().Phone) {
			t.Error("the log has a phone number")
		}
		r.halt()
	}
}

func TestBadNumberIsNoLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	r.open()
	for _, phone := range []string{"0151123456", "none", "+49"} {
		if err := r.login(phone); channels.ClassOf(err) != channels.BadMessage {
			t.Errorf("%q: %v", phone, err)
		}
	}
}

// A device that was taken off the phone's list: the state says so, its keys go, and another may be linked.
func TestLoggedOutOnThePhone(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.LogOut()
	err := <-r.over
	r.over <- err
	if channels.ClassOf(err) != channels.Fatal {
		t.Fatalf("Run ended with %v", err)
	}
	if s := r.in.last(); s.State != channels.Failed || !strings.Contains(s.Hint, "channel login wa") {
		t.Errorf("state %+v", s)
	}
	if err := r.login(""); err != nil {
		t.Fatal(err)
	}
	r.ready()
}

func TestLogoutUnlinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := r.ch.Logout(ctx); err != nil {
		t.Fatal(err)
	}
	r.in.until(t, "needs", func() bool { return r.in.last().State == channels.Needs })
	if _, err := r.ch.Send(ctx, channels.Post{To: r.dm(ana), Text: "anybody?"}); err == nil {
		t.Error("a send without a device succeeds")
	}
	if err := r.login(""); err != nil {
		t.Fatal(err)
	}
	r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
}

func TestRefusedLoginsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure whatsapptest.Failure
		state   channels.State
		says    string
	}{
		"banned for a time": {whatsapptest.Failure{Reason: "402", Code: "101", Expire: "7200"}, channels.Needs, "the ban ends 20"},
		"outdated":          {whatsapptest.Failure{Reason: "405"}, channels.Needs, "client_version: newest"},
		"phone gone":        {whatsapptest.Failure{Reason: "403"}, channels.Failed, "parley channel login wa"},
		"banned":            {whatsapptest.Failure{Reason: "406"}, channels.Failed, "parley channel login wa"},
	} {
		r := newRig(t, true)
		r.net.FailLogin(c.failure)
		r.run()
		r.in.until(t, name, func() bool { return r.in.last().State == c.state })
		if s := r.in.last(); !strings.Contains(s.Hint, c.says) {
			t.Errorf("%s: %+v", name, s)
		}
		r.halt()
	}
}

// A refusal that says nothing of the link is told with its code: what passes is tried on, for the rest a person must act.
func TestRefusalsAreToldWithTheirCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  string
		state channels.State // in the end
		says  string
	}{
		{"409", channels.Needs, "rejects how this client names itself"},
		{"418", channels.Needs, "does not know this client"},
		{"400", channels.Needs, "malformed"},
		{"500", channels.Deaf, "server has failed"},
		{"503", channels.Deaf, "not available"},
	} {
		r := newRig(t, true)
		r.net.FailLogin(whatsapptest.Failure{Reason: c.code})
		r.open().ExpectNoReason()
		findings := r.ch.Check(t.Context())
		if f := findings[len(findings)-1]; f.OK || !strings.Contains(f.What, "code "+c.code+": ") || strings.Contains(f.Hint, "network") {
			t.Errorf("%s: the test says %+v", c.code, f)
		}
		r.run()
		r.in.until(t, c.code, func() bool { return r.in.last().State == c.state })
		if s := r.in.last(); !strings.Contains(s.Cause, "code "+c.code+": ") || !strings.Contains(s.Cause, c.says) || s.Hint == "" || strings.Contains(s.Hint, "network") {
			t.Errorf("%s: %+v", c.code, s)
		}
		logins := r.net.Logins()
		r.net.FailLogin(whatsapptest.Failure{})
		if c.state == channels.Deaf { // it heals by itself
			r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
		} else if r.net.Logins() > logins+1 {
			t.Errorf("%s: it is tried on", c.code)
		}
		r.halt()
	}
}

// What the phone agreed to and WhatsApp never heard of is not a link; what WhatsApp has is one, also when it could not say so.
func TestALinkThatWasNotFinishedIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	r.run()
	r.in.until(t, "needs", func() bool { return r.in.last().State == channels.Needs })
	link := func() (notes []string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		err = r.ch.Login(ctx, channels.LoginHow{}, func(s channels.LoginStep) {
			notes = append(notes, s.Note)
			if s.QR != "" {
				if err := r.net.Scan(s.QR); err != nil {
					t.Error(err)
				}
			}
		})
		return notes, err
	}
	told := func(notes []string) bool {
		return slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, "Linked") })
	}
	r.net.FailSignature(whatsapptest.SignatureLost)
	if notes, err := link(); err == nil || !strings.Contains(err.Error(), "was not finished") || told(notes) {
		t.Errorf("a lost signature: %v, %q", err, notes)
	}
	if s := r.in.last(); s.State != channels.Needs {
		t.Errorf("state %+v", s)
	}
	r.net.FailSignature(whatsapptest.SignatureUntold)
	if notes, err := link(); err != nil || !told(notes) {
		t.Fatalf("a link that was not told: %v, %q", err, notes)
	}
	r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
	r.halt()
}

// A process that dies at the last step of linking leaves a device that WhatsApp may not know: that is told as what it is.
func TestAnUnfinishedLinkOfBeforeIsToldAsSuch(t *testing.T) {
	t.Parallel()
	for met, says := range map[bool]string{true: "was logged out", false: "was not finished"} {
		r := newRig(t, true)
		if !met {
			r.forgetMeeting()
		}
		r.net.LogOut() // WhatsApp does not know the device
		r.run()
		r.in.until(t, "fatal", func() bool { return r.in.last().State == channels.Failed })
		if s := r.in.last(); !strings.Contains(s.Cause, says) || !strings.Contains(s.Hint, "parley channel login wa") {
			t.Errorf("let in before: %v; %+v", met, s)
		}
	}
}

// forgetMeeting makes the device one that WhatsApp never let in.
func (r *rig) forgetMeeting() {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "wa-wa.db"))
	if err == nil {
		_, err = db.ExecContext(r.t.Context(), `CREATE TABLE parley_met (device TEXT PRIMARY KEY) WITHOUT ROWID`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// Two processes with one device's keys would destroy each other's sessions: the second one's connection is not fought for.
func TestReplacedStreamEndsTheChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	logins := r.net.Logins()
	r.net.Replace()
	err := <-r.over
	r.over <- err
	if s := r.in.last(); channels.ClassOf(err) != channels.Fatal || s.State != channels.Failed || s.Hint == "" {
		t.Errorf("Run ended with %v, state %+v", err, s)
	}
	if r.net.Logins() != logins {
		t.Error("it connected again")
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	first := r.ch
	second := r.open()
	defer func() { r.ch = first }()
	in := newJournal()
	if err := second.Run(t.Context(), in); err == nil || in.last().State != channels.Needs || in.last().Hint == "" {
		t.Errorf("a second process runs: %v, %+v", err, in.last())
	}
}

func TestServerRestartIsPassedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.StreamError("503")
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "after the restart"})
	r.in.text(t, "after the restart")
	r.send(channels.Post{To: r.dm(ana), Token: "t", Text: "so it is"})
}

// A line on which nothing is answered any more is told and left; what comes meanwhile is got on the next.
func TestDeafLineIsToldAndLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	r.net.Deaf(true)
	r.in.until(t, "deaf", func() bool { return r.in.last().State == channels.Deaf })
	r.net.Deaf(false)
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "can you hear me?"})
	r.in.text(t, "can you hear me?")
	r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
}

// phoneWrites has the account's phone write to the device, so that it can be asked.
func (r *rig) phoneWrites() {
	r.t.Helper()
	r.net.Greet()
	r.sees("what the phone tells", func() bool { return len(r.net.Waiting()) == 0 })
}

// One question to the account's phone that is not answered, asked while a message could not be read, holds up nobody for
// longer than the bound: not what others write, and not what is sent to them.
func TestR05_AnUnansweredQuestionHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]whatsapptest.PeerFault{
		"not acknowledged":            {whatsapptest.PeerNoAck},
		"cut, and sent again without": {whatsapptest.PeerCut, whatsapptest.PeerNoAck},
		"cut twice":                   {whatsapptest.PeerCut, whatsapptest.PeerCut},
		"cut, not acknowledged, and the next neither": {whatsapptest.PeerCut, whatsapptest.PeerNoAck, whatsapptest.PeerNoAck},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, true)
			r.open().AnswerWithin(2 * time.Second)
			r.ready()
			r.phoneWrites()
			r.net.FailPeer(faults...)
			began := time.Now()
			r.net.Write(whatsapptest.In{From: ana.Phone, Text: "garbled at first", Corrupt: 1})
			r.sees("the first fault", func() bool { return r.net.PeerFaults() < len(faults) })
			r.net.Write(whatsapptest.In{From: ben.Phone, Text: "hello"})
			for try := 0; ; try++ { // as the gateway does
				_, err := r.ch.Send(t.Context(), channels.Post{To: r.dm(ben), Token: "answer", Text: "good day"})
				if err == nil {
					break
				}
				if class := channels.ClassOf(err); class != channels.Retry && class != channels.Unknown || !channels.Sleep(t.Context(), 20*time.Millisecond) {
					t.Fatalf("try %d: %v", try, err)
				}
			}
			r.in.text(t, "hello")
			if took := time.Since(began); took > 30*time.Second { // the bound is 2 s, three times at most; whatsmeow's own are 75 s and none
				t.Errorf("others waited %v", took)
			}
			r.in.text(t, "garbled at first")
			if n := len(r.net.Sent(ben.PN())); n != 1 {
				t.Errorf("Ben sees %d answers", n)
			}
			r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
		})
	}
}

// A message that is sent again after a cut, and is not acknowledged then either, holds up others no longer than one that was
// never cut.
func TestR05_AnUnansweredResendHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.open().AnswerWithin(2 * time.Second)
	r.ready()
	r.net.SwallowNext(2)
	first := make(chan error, 1)
	go func() { // waited for below
		_, err := r.ch.Send(t.Context(), channels.Post{To: r.dm(ana), Token: "a", Text: "to Ana"})
		first <- err
	}()
	r.sees("the first try", func() bool { return r.net.Taken() == 1 })
	began := time.Now()
	r.net.Cut()
	r.sees("the second", func() bool { return r.net.Taken() == 2 })
	for {
		_, err := r.ch.Send(t.Context(), channels.Post{To: r.dm(ben), Token: "b", Text: "to Ben"})
		if err == nil {
			break
		}
		if channels.ClassOf(err) == channels.Fatal || !channels.Sleep(t.Context(), 10*time.Millisecond) {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 20*time.Second { // the bound is 2 s; it was all of a send's minute
		t.Errorf("Ben waited %v", took)
	}
	if err := <-first; channels.ClassOf(err) != channels.Unknown {
		t.Errorf("the first ended with %v", err)
	}
	if n, m := len(r.net.Sent(ana.PN())), len(r.net.Sent(ben.PN())); n != 1 || m != 1 {
		t.Errorf("Ana sees %d messages, Ben %d", n, m)
	}
}

// A send returns when its context ends, also while it waits behind another of whatsmeow's; the test and the state tell when
// nothing is acknowledged.
func TestR05_ASendEndsWithItsContextAndTheStateTells(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.open().AnswerWithin(time.Hour)
	r.ready()
	r.phoneWrites()
	r.net.FailPeer(whatsapptest.PeerNoAck)
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "garbled at first", Corrupt: 1})
	r.sees("the question to the phone", func() bool { return r.net.PeerFaults() == 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := r.ch.Send(ctx, channels.Post{To: r.dm(ben), Token: "a", Text: "behind it"}); err == nil {
		t.Error("it was sent")
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the send returned after %v, its context ended after 100 ms", took)
	}
	r.net.Cut() // frees the question
	r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
	if n := len(r.net.Sent(ben.PN())); n != 0 {
		t.Errorf("a send that was given up arrived %d times", n)
	}

	r.ch.AnswerWithin(time.Second)
	r.net.SwallowNext(1000)
	trying, enough := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { // as the gateway does; ends below
		for {
			_, err := r.ch.Send(trying, channels.Post{To: r.dm(ben), Token: "b", Text: "anybody?"})
			if err == nil || !channels.Sleep(trying, 10*time.Millisecond) {
				over <- err
				return
			}
		}
	}()
	r.in.until(t, "deaf", func() bool { return r.in.last().State == channels.Deaf })
	logins := r.net.Logins()
	r.sees("two further connections", func() bool { return r.net.Logins() > logins+1 })
	if s := r.in.last(); s.State != channels.Deaf || s.Hint == "" {
		t.Errorf("state %+v", s)
	}
	bad := false
	for _, f := range r.ch.Check(t.Context()) {
		bad = bad || !f.OK
	}
	if !bad {
		t.Error("the test finds nothing wrong")
	}
	enough()
	if err := <-over; err == nil {
		t.Error("what was not acknowledged is a success")
	}
	r.net.SwallowNext(-r.net.ToSwallow())
	r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready }) // nothing is asked: the doubt ends by itself
	r.send(channels.Post{To: r.dm(ben), Token: "b", Text: "anybody?"})
	if n := len(r.net.Sent(ben.PN())); n != 1 {
		t.Errorf("Ben sees it %d times", n)
	}
}

// A gateway that takes nothing for minutes: the connection is given up, and afterwards all comes, in order.
func TestR01_MessagesWaitForAGatewayThatTakesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.in.decide(func(int) error { return channels.ErrBusy })
	r.ready()
	for _, text := range []string{"one", "two", "three"} {
		r.net.Write(whatsapptest.In{From: ana.Phone, Text: text})
	}
	r.in.until(t, "deaf", func() bool { return r.in.last().State == channels.Deaf })
	logins := r.net.Logins()
	r.time.Move(3 * time.Minute)
	r.sees("another connection", func() bool { return r.net.Logins() > logins })
	if r.net.Waiting() == nil {
		t.Error("a message was acknowledged")
	}
	r.in.decide(nil)
	r.in.text(t, "three")
	for i, text := range []string{"one", "two", "three"} {
		if got := r.in.all()[i].Text; got != text {
			t.Errorf("message %d is %q, want %q", i, got, text)
		}
	}
}

// Many cuts, each with a message in and one out: nothing grows.
func TestR14_ReconnectsLeaveNothing(t *testing.T) {
	r := newRig(t, true)
	r.open().ExpectNoReason()
	r.ready()
	round := func(n int) {
		for range n {
			r.net.Cut()
			id := r.net.Write(whatsapptest.In{From: ana.Phone, Text: "still there?"})
			r.in.get(t, id, func(in channels.Inbound) bool { return in.ID == of(id, ana) })
			r.in.until(t, "ready", func() bool { return r.in.last().State == channels.Ready })
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			_, err := r.ch.Send(ctx, channels.Post{To: r.dm(ana), Token: id, Text: "yes"})
			cancel()
			var e *channels.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("send: %v", err)
			}
		}
	}
	look := func() (goroutines, files int, heap uint64) {
		r.sees("quiet", func() bool { return len(r.net.Waiting()) == 0 })
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		list, _ := os.ReadDir("/proc/self/fd")
		return runtime.NumGoroutine(), len(list), m.HeapAlloc
	}
	round(6)
	g1, f1, h1 := look()
	round(18)
	g2, f2, h2 := look()
	t.Logf("after 6 and 24 cuts: %d and %d goroutines, %d and %d files, %d and %d KiB of heap", g1, g2, f1, f2, h1>>10, h2>>10)
	if g2 > g1+6 || f2 > f1+4 || h2 > h1+(4<<20) {
		t.Error("something grows")
	}
}
