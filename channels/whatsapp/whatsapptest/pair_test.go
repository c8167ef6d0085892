package whatsapptest_test

import (
	"testing"

	"go.mau.fi/whatsmeow"
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
