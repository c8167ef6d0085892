package whatsapptest_test

import (
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley/channels/whatsapp/whatsapptest"
)

func (r *rig) offer() string {
	r.t.Helper()
	r.cli = whatsmeow.NewClient(r.box.NewDevice(), logger())
	h := r.s.Client()
	r.cli.SetWebsocketHTTPClient(h)
	r.cli.SetPreLoginHTTPClient(h)
	r.cli.AddEventHandlerWithSuccessStatus(r.handle)
	if err := r.cli.Connect(); err != nil {
		r.t.Fatal(err)
	}
	return wait(r, "QR codes", func(*events.QR) bool { return true }).Codes[0]
}

func TestPairingByQRCode(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	code := r.offer()
	if err := r.s.Scan("2@x,eA==,eA==,eA=="); err == nil {
		t.Error("a code that nobody shows was taken")
	}
	if err := r.s.Scan(code); err != nil {
		t.Fatal(err)
	}
	r.linked()
}

// linked waits for the end of a pairing and talks.
func (r *rig) linked() {
	r.t.Helper()
	p := wait(r, "pairing", func(*events.PairSuccess) bool { return true })
	if p.ID.User != r.s.Account().Phone || p.LID.User != r.s.Account().LID || p.ID.Device == 0 {
		r.t.Errorf("paired as %+v", p)
	}
	wait(r, "connected", func(*events.Connected) bool { return true }) // after 515 and a new connection
	wait(r, "the account's name", func(e *events.AppStateSyncComplete) bool { return e.Name == appstate.WAPatchCriticalBlock })
	if err := r.cli.SendPresence(r.t.Context(), types.PresenceAvailable); err != nil { // needs the name
		r.t.Error(err)
	}
	r.s.Write(whatsapptest.In{From: ana, Text: "welcome"})
	r.message("welcome")
	r.send(pn(ana), "thanks")
	if got := r.s.Sent(pn(ana)); len(got) != 1 || got[0].Text != "thanks" {
		r.t.Errorf("Ana sees %+v", got)
	}
	r.clean()
}

func TestPairingByPhoneCode(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	r.offer()
	if _, err := r.cli.PairPhone(t.Context(), r.s.Account().Phone, true, whatsmeow.PairClientChrome, "Parley"); err == nil {
		t.Error("a display name that is no browser was taken")
	}
	if _, err := r.cli.PairPhone(t.Context(), "4999999999", true, whatsmeow.PairClientChrome, "Chrome (Linux)"); err == nil {
		t.Error("a number without an account was taken")
	}
	code, err := r.cli.PairPhone(t.Context(), "+"+r.s.Account().Phone, true, whatsmeow.PairClientChrome, "Chrome (Linux)")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.s.EnterCode(code); err != nil {
		t.Fatal(err)
	}
	r.linked()
}

// TestHistoryComesApart: what was said before linking comes as history, not as messages.
func TestHistoryComesApart(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	r.s.Greet(whatsapptest.Old{From: ana, Text: "last year", ID: "OLD1", At: 1700000000})
	h := wait(r, "history", func(e *events.HistorySync) bool { return len(e.Data.GetConversations()) > 0 })
	if m := h.Data.GetConversations()[0].GetMessages(); len(m) != 1 || text(m[0].GetMessage().GetMessage()) != "last year" {
		t.Errorf("history %v", h.Data)
	}
	r.sees("receipts", func() bool { return len(r.s.Waiting()) == 0 })
	r.s.SyncState()
	r.sees("the question for the state", func() bool { return r.s.Queries("w:sync:app:state sync") > 0 && len(r.s.Waiting()) == 0 })
	r.clean()
}

// TestThePhoneHelpsOut: what the client cannot read, or did not get at all, it asks its own phone for.
func TestThePhoneHelpsOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.start()
	r.cli.AutomaticMessageRerequestFromPhone = true
	if err := r.cli.Connect(); err != nil {
		t.Fatal(err)
	}
	r.s.Greet() // without it there is no session with the phone
	wait(r, "history", func(*events.HistorySync) bool { return true })
	for _, in := range []whatsapptest.In{
		{From: ana, Text: "nothing for you", Unavail: true}, {From: ben, Group: group, Text: "nor for you", Unavail: true},
	} {
		id := r.s.Write(in)
		m := r.message(in.Text)
		if m.Info.ID != id || m.UnavailableRequestID == "" || m.Info.Sender.User == r.s.Account().Phone {
			t.Errorf("message %+v", m)
		}
	}
	r.clean()
}
