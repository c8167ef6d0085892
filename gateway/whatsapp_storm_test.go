//go:build !nowhatsapp

package gateway_test

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"

	"parley/channels"
	"parley/channels/whatsapp/whatsapptest"
	"parley/gateway"
)

// linkedHere has WhatsApp's factory find a linked device in its directory, as after a login.
func linkedHere(t *testing.T, s *whatsapptest.Server) func(*gateway.Options) {
	return func(o *gateway.Options) {
		o.Channels = slices.Clone(o.Channels)
		for i, f := range o.Channels {
			if f.Network != "whatsapp" {
				continue
			}
			o.Channels[i].New = func(name string, options any, d channels.Deps) (channels.Channel, error) {
				db, err := sql.Open("sqlite", "file:"+filepath.Join(d.Dir, "wa-"+name+".db")+"?_pragma=foreign_keys(1)&_txlock=immediate")
				if err != nil {
					return nil, err
				}
				box := sqlstore.NewWithDB(db, "sqlite", nil)
				if err := box.Upgrade(t.Context()); err != nil {
					return nil, err
				}
				if _, err := s.Link(t.Context(), box.NewDevice(), 60); err != nil {
					return nil, err
				}
				if err := box.Close(); err != nil {
					return nil, err
				}
				return f.New(name, options, d)
			}
		}
	}
}

// R03: WhatsApp loses receipts, offers messages again, out of order and over new connections, refuses and swallows.
func TestR03_StormOnWhatsApp(t *testing.T) {
	if slower > 1 {
		t.Skip("whatsmeow itself races when a line ends under a send: `make race` runs this without the detector")
	}
	t.Parallel()
	whatsapptest.Quiet()
	s := whatsapptest.Start(t, whatsapptest.Options{})
	phone := func(p int) string { return fmt.Sprintf("49177%08d", p) }
	chat := func(p int) types.JID { return types.NewJID(phone(p), types.DefaultUserServer) }
	for p := range stormPeople {
		s.AddPerson(whatsapptest.Person{Phone: phone(p), LID: fmt.Sprintf("17000000000%04d", p), Name: fmt.Sprintf("P%d", p), ByPhone: p%2 == 0, Devices: p % 2})
	}
	root := whatsapptest.Root()
	defer func() {
		if t.Failed() {
			t.Logf("waiting: %q; taken %d", s.Waiting(), s.Taken())
			for p := range stormPeople {
				for _, m := range s.Chat(phone(p), chat(p)) {
					t.Logf("P%d: %+v", p, m)
				}
			}
		}
	}()
	ride(t, storm{
		name: "wa",
		more: fmt.Sprintf(`, {name: wa, type: whatsapp, api_url: "%s", root_key: "%s", access: {dm: open}}`, s.URL(), hex.EncodeToString(root[:])),
		opt:  linkedHere(t, s),
		say:  func(p int, text string) { s.Write(whatsapptest.In{From: phone(p), Text: text}) },
		seen: func(p int) (all []string) {
			for _, m := range s.Sent(chat(p)) {
				all = append(all, m.Text)
			}
			return all
		},
		wait: s.Wait,
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
		calm: func() {},
	})
	if c := s.Complaints(); len(c) > 0 {
		t.Errorf("the network complains: %q", c)
	}
}
