package whatsapptest_test

import (
	"testing"

	"parley/channels/whatsapp/whatsapptest"
)

func TestDirectMessagesGoBothWays(t *testing.T) {
	t.Parallel()
	for _, phone := range []string{ana, ben} {
		t.Run(phone, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, true)
			r.connect()
			id := r.s.Write(whatsapptest.In{From: phone, Text: "hello"})
			m := r.message("hello")
			if m.Info.ID != id || m.Info.IsGroup || m.Info.SenderAlt.IsEmpty() {
				t.Errorf("info %+v", m.Info)
			}
			r.sees("a receipt", func() bool { return r.s.Receipted("", id) && len(r.s.Waiting()) == 0 })
			sent := r.send(m.Info.Chat, "hi")
			got := r.s.Sent(pn(phone))
			if len(got) != 1 || got[0].Text != "hi" || got[0].ID != sent || got[0].Waiting {
				t.Errorf("people see %+v", got)
			}
			r.s.Write(whatsapptest.In{From: phone, Text: "again"})
			r.message("again")
			r.send(pn(phone), "by number")
			if got := r.s.Sent(pn(phone)); len(got) != 2 {
				t.Errorf("people see %+v", got)
			}
			r.clean()
		})
	}
}
