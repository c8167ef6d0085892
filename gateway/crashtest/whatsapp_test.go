//go:build !nowhatsapp && !race

package crashtest

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"

	"parley/channels/whatsapp/whatsapptest"
)

// onWhatsAppToo are the rows of WhatsApp, which a build may leave out.
func onWhatsAppToo() []row {
	return []row{
		{name: "R01_R03_R05_whatsapp_killed", run: killed, net: onWhatsAppAndLinked, few: 6}, // ids are made of our tokens: nothing comes twice
		{name: "R03_whatsapp_storm", run: storm, net: onWhatsAppAndLinked, few: 6},
		{name: "R01_whatsapp_acknowledged", run: acknowledged, net: onWhatsApp, few: 2},
		{name: "R01_whatsapp_acknowledged_without_fsync", run: acknowledged, net: onWhatsApp, few: 2, blind: true},
	}
}

// onWhatsApp is a WhatsApp to which the daemon's device is linked, with people who come by number and by LID. It loses three of
// ten receipts and offers those messages again.
func onWhatsApp(w *town) network { return whatsApp(w, 0) }

// onWhatsAppAndLinked is one on which every other person has a linked device beside the phone.
func onWhatsAppAndLinked(w *town) network { return whatsApp(w, 1) }

func whatsApp(w *town, devices int) network {
	const people = 6
	whatsapptest.Quiet()
	s := whatsapptest.Start(w.t, whatsapptest.Options{})
	phone := func(chat int) string { return fmt.Sprintf("49176%08d", 1000+chat) }
	jid := func(chat int) types.JID { return types.NewJID(phone(chat), types.DefaultUserServer) }
	for p := range people {
		s.AddPerson(whatsapptest.Person{Phone: phone(p), LID: fmt.Sprintf("19000000000%04d", p), Name: fmt.Sprintf("P%d", p), ByPhone: p%2 == 0, Devices: devices * (p % 2)})
	}
	linked(w, s)
	root := whatsapptest.Root()
	return network{
		channel: fmt.Sprintf(`{name: wa, type: whatsapp, api_url: "%s", root_key: "%s", access: {dm: open}}`, s.URL(), hex.EncodeToString(root[:])),
		chats:   people,
		write:   func(chat int, text string) { s.Write(whatsapptest.In{From: phone(chat), Text: text}) },
		shown: func(chat int) (all []string) {
			for _, m := range s.Chat(phone(chat), jid(chat)) {
				if m.Own && !m.Deleted {
					all = append(all, m.Text)
				}
			}
			return all
		},
		wait:     s.Wait,
		ready:    func() bool { return s.Connected() == 1 },
		pending:  func() int { return len(s.Waiting()) },
		complain: s.Complaints,
		trouble:  func() { s.LoseReceipts(people * 2 * 3 / 10) },
		strike: func(n int) {
			switch n % 5 {
			case 0:
				s.LoseReceipts(3)
			case 1:
				s.Hold()
				s.Release(func(n int) []int {
					order := make([]int, n)
					for i := range order {
						order[i] = n - 1 - i
					}
					return order
				})
				s.Redeliver()
			case 2:
				s.LoseReceipts(2)
				s.StreamError("503")
			case 3:
				s.RefuseNext(whatsapptest.CodeFlood)
			case 4:
				s.Cut()
			}
		},
		calm: func() {
			s.KeepReceipts()
			s.Cut() // what the lost receipts were for is offered again, and only to a new connection
		},
		trace: func() tracing {
			s.NoReceipts() // the daemon's own: each would be acknowledged, which looks the same
			l := &lineReader{server: "->" + strings.TrimPrefix(s.URL(), "http://") + "]"}
			return tracing{reader: l, flags: "-yy", mark: func(file string) {
				info, err := os.Stat(file)
				if err != nil {
					w.t.Fatal(err)
				}
				l.marks = append(l.marks, info.Size())
			}}
		},
	}
}

// linked makes a linked device in the data directory, as a login does.
func linked(w *town, s *whatsapptest.Server) {
	w.t.Helper()
	if err := os.Mkdir(w.dataDir(), 0o700); err != nil {
		w.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dataDir(), "wa-wa.db")+"?_pragma=foreign_keys(1)&_txlock=immediate")
	if err != nil {
		w.t.Fatal(err)
	}
	box := sqlstore.NewWithDB(db, "sqlite", nil)
	if err := box.Upgrade(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if _, err := s.Link(w.t.Context(), box.NewDevice(), 100); err != nil {
		w.t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// lineReader follows a connection of which all is encrypted: of one message at a time it takes the first read after the mark
// for its coming, and the next write for its receipt.
type lineReader struct {
	server  string  // the end of what -yy says of a socket
	marks   []int64 // where the trace was when each message was sent
	next    int
	waiting bool // for what the last mark was set for
	came    int  // 0: not yet
}

// turn goes on to the next mark once the trace has come to it.
func (l *lineReader) turn(r *reader) {
	if !l.waiting && l.next < len(l.marks) && r.at >= l.marks[l.next] {
		l.next, l.waiting, l.came = l.next+1, true, 0
	}
}

func (l *lineReader) got(r *reader, p pending, _ string) {
	if l.turn(r); l.waiting && l.came == 0 && strings.HasSuffix(p.path, l.server) {
		l.came = r.line
	}
}

func (l *lineReader) wrote(r *reader, p pending) {
	if l.turn(r); l.waiting && l.came > 0 && strings.HasSuffix(p.path, l.server) {
		r.acked(fmt.Sprintf("message %d", l.next), false, l.came)
		l.waiting = false
	}
}
