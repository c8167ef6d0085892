package whatsapptest_test

import (
	"slices"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"go.mau.fi/whatsmeow"

	"parley/channels/whatsapp/whatsapptest"
)

func TestWhatWasMissedComesAtTheNextConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	var ids []string
	for _, text := range []string{"one", "two", "three"} {
		ids = append(ids, r.s.Write(whatsapptest.In{From: ana, Text: text}))
	}
	r.connect()
	p := wait(r, "a preview", func(*events.OfflineSyncPreview) bool { return true })
	if p.Total != 3 || p.Messages != 3 {
		t.Errorf("preview %+v", p)
	}
	for i, text := range []string{"one", "two", "three"} {
		if m := r.message(text); m.Info.ID != ids[i] {
			t.Errorf("%s has the id %s", text, m.Info.ID)
		}
	}
	wait(r, "the end", func(e *events.OfflineSyncCompleted) bool { return e.Count == 3 })
	r.sees("nothing left", func() bool { return len(r.s.Waiting()) == 0 })
}

func TestAMessageIsOfferedUntilItHasAReceipt(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	failed := make(chan struct{}, 4)
	r.failing(func(e any) bool {
		_, is := e.(*events.Message)
		if is {
			failed <- struct{}{}
		}
		return is
	})
	id := r.s.Write(whatsapptest.In{From: ana, Text: "store me"})
	<-failed
	if !slices.Contains(r.s.Waiting(), id) {
		t.Error("the network forgot a message without a receipt")
	}
	r.stop()
	r.failing(nil)
	r.connect()
	if m := r.message("store me"); m.Info.ID != id {
		t.Errorf("info %+v", m.Info)
	}
	r.sees("a receipt", func() bool { return r.s.Receipted("", id) })
	r.s.LoseReceipts(1)
	id = r.s.Write(whatsapptest.In{From: ana, Text: "lost receipt"})
	r.message("lost receipt")
	r.sees("the loss", func() bool { return r.s.Lost() == 1 })
	r.settled()
	r.stop()
	r.connect()
	r.sees("the second receipt", func() bool { return r.s.Receipted("", id) && len(r.s.Waiting()) == 0 })
	r.clean()
}

func TestTheQueueKeepsFourteenDays(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.s.Write(whatsapptest.In{From: ana, Text: "old"})
	r.s.Advance(13 * 24 * time.Hour)
	r.s.Write(whatsapptest.In{From: ana, Text: "young"})
	r.s.Advance(2 * 24 * time.Hour)
	if n := len(r.s.Waiting()); n != 1 {
		t.Errorf("%d wait", n)
	}
	r.connect()
	r.message("young")
}

// TestOneIDIsOneMessage: people drop a second message with an id, whatever became of its acknowledgement.
func TestOneIDIsOneMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	for _, to := range []types.JID{pn(ana), groupJID()} {
		id := r.cli.GenerateMessageID()
		send := func(patience time.Duration) error {
			_, err := r.cli.SendMessage(t.Context(), to, &waE2E.Message{Conversation: proto.String("once")},
				whatsmeow.SendRequestExtra{ID: id, Timeout: patience})
			return err
		}
		r.s.SwallowNext(1)
		if err := send(300 * time.Millisecond); err == nil {
			t.Error("an answer came that was swallowed")
		}
		if err := send(20 * time.Second); err != nil {
			t.Error(err)
		}
		if got := r.s.Sent(to); len(got) != 1 || got[0].ID != id {
			t.Errorf("people see %+v", got)
		}
	}
	r.clean()
}

// TestADroppedLineRepeatsTheFrame: whatsmeow sends the same ciphertext again, which phones drop.
func TestADroppedLineRepeatsTheFrame(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	r.s.SwallowNext(1)
	done := make(chan error, 1)
	go func() {
		_, err := r.cli.SendMessage(t.Context(), pn(ana), &waE2E.Message{Conversation: proto.String("once")})
		done <- err
	}()
	r.sees("the message", func() bool { return len(r.s.Sent(pn(ana))) == 1 })
	r.settled()
	r.s.Cut()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := r.s.Sent(pn(ana)); len(got) != 1 || r.s.Taken() != 2 {
		t.Errorf("people see %+v, the network took %d", got, r.s.Taken())
	}
	r.clean()
}

func TestRetryReceiptsInBothDirections(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	for _, g := range []string{"", group} {
		id := r.s.Write(whatsapptest.In{From: ana, Group: g, Text: "cannot be read at first " + g, Corrupt: 2})
		wait(r, "an undecryptable message", func(m *events.UndecryptableMessage) bool { return m.Info.ID == id })
		if m := r.message("cannot be read at first " + g); m.Info.ID != id || m.RetryCount != 2 {
			t.Errorf("message %+v", m)
		}
	}
	for _, to := range []types.JID{pn(ben), groupJID()} {
		r.s.Blind(ben, 1)
		r.send(to, "say again")
		r.sees("the message at last", func() bool {
			got := r.s.Chat(ben, to)
			return len(got) > 0 && !got[len(got)-1].Waiting && got[len(got)-1].Text == "say again"
		})
	}
	r.clean()
}

func TestReorderedAndRedelivered(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	r.s.Hold()
	for _, text := range []string{"a", "b", "c"} {
		r.s.Write(whatsapptest.In{From: ana, Text: text})
	}
	n := r.s.Release(func(n int) []int {
		var turned []int
		for i := range n {
			turned = append(turned, n-1-i)
		}
		return turned
	})
	if n != 3 {
		t.Errorf("%d were held", n)
	}
	for _, text := range []string{"c", "b", "a"} {
		r.message(text)
	}
	r.s.LoseReceipts(1)
	id := r.s.Write(whatsapptest.In{From: ana, Text: "twice"})
	r.message("twice")
	r.s.Redeliver()
	r.sees("a receipt", func() bool { return r.s.Receipted("", id) })
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	try := func(to types.JID, text string) error {
		_, err := r.cli.SendMessage(t.Context(), to, &waE2E.Message{Conversation: proto.String(text)})
		return err
	}
	if err := try(pn("4930123456"), "anybody?"); err == nil {
		t.Error("a message to nobody was taken")
	}
	if err := try(pn(ana), string(make([]byte, whatsapptest.MaxStanza))); err == nil {
		t.Error("a message of 256 KiB was taken")
	}
	r.s.RefuseNext(whatsapptest.CodeFlood)
	if err := try(pn(ana), "too fast"); err == nil || err.Error() != "server returned error 429" {
		t.Errorf("a flood wait gave %v", err)
	}
	r.s.Unregister(ben)
	if err := try(pn(ben), "there?"); err == nil {
		t.Error("a message to a lost account was taken")
	}
	if got := len(r.s.Sent(pn(ana))); got != 0 {
		t.Errorf("people see %d messages", got)
	}
	list, err := r.cli.IsOnWhatsApp(t.Context(), []string{"+" + ana, "+" + ben})
	if err != nil || len(list) != 2 || !list[0].IsIn || list[1].IsIn {
		t.Errorf("who is there: %+v, %v", list, err)
	}
	r.s.Block(ana)
	if err := try(pn(ana), "blocked"); err != nil || len(r.s.Sent(pn(ana))) != 0 {
		t.Errorf("the blocked one was told: %v", err)
	}
}
