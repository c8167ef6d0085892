//go:build !nowhatsapp

package gateway_test

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// R03, T08: on WhatsApp, too, what people edit and delete takes effect; whichever of their two addresses they come by, and
// also where it is the number before and the LID after. T11: and it shows no buttons, but a question can be quoted.
func TestR03_T08_T11_OnWhatsApp(t *testing.T) {
	if slower > 1 {
		t.Skip("whatsmeow itself races when a line ends under a send: `make race` runs OnWhatsApp without the detector")
	}
	t.Parallel()
	whatsapptest.Quiet()
	s := whatsapptest.Start(t, whatsapptest.Options{})
	people := []whatsapptest.Person{
		{Phone: "4917700000001", LID: "170000000000001", Name: "Ana", ByPhone: true},
		{Phone: "4917700000002", LID: "170000000000002", Name: "Ben"},
		{Phone: "4917700000003", LID: "170000000000003", Name: "Cid", ByPhone: true},
		{Phone: "4917700000004", LID: "170000000000004", Name: "Dora", ByPhone: true},
	}
	for _, p := range people {
		s.AddPerson(p)
	}
	const byLID, byNumber = "120363000000000001", "120363000000000002"
	members := []string{people[0].Phone, people[1].Phone}
	s.AddGroup(whatsapptest.Group{ID: byLID, Subject: "by LID", Members: members})
	s.AddGroup(whatsapptest.Group{ID: byNumber, Subject: "by number", Members: members, ByPhone: true})

	ts, root := newTalks(5), whatsapptest.Root()
	gates := withTools(ts.tool())
	linked := linkedHere(t, s)
	owner := whatsAppOwner{s, people[3].Phone, people[3].PN()}
	ts.rig = newRig(t, setup{script: owner.script(ts.script), opt: func(o *gateway.Options) { gates(o); linked(o) },
		extra: "sessions: {queue: {mode: followup}}\n" + owner.config() + quiet,
		more: fmt.Sprintf(`, {name: wa, type: whatsapp, api_url: "%s", root_key: "%s", access: {dm: open, groups: open, require_mention: true}}`,
			s.URL(), hex.EncodeToString(root[:]))})
	ts.logged("channel=wa state=ready", 1)

	conversation := func(name string, p whatsapptest.Person, group string, moves bool) *talk {
		in := whatsapptest.In{From: p.Phone, Group: group}
		k := &talk{name: name, peer: p.PN().String()}
		chat := p.PN()
		if group != "" {
			chat = types.NewJID(group, types.GroupServer)
			k.peer = chat.String()
			k.mention = "@" + s.Account().LID + " "
		}
		with := func(text string) whatsapptest.In {
			in := in
			in.Text = text
			if k.mention != "" && strings.HasPrefix(text, k.mention) {
				in.Mention = []string{s.Account().Phone}
			}
			return in
		}
		change := func() { // from the first change on they come by the other address
			if moves {
				s.ComesBy(p.Phone, false)
			}
		}
		k.say = func(text string) string { return s.Write(with(text)) }
		k.edit = func(id, text string) { change(); s.Edit(with(text), id) }
		k.remove = func(id string) { change(); s.Revoke(in, id) }
		k.shown = func() string {
			var all []string
			for _, m := range s.Sent(chat) {
				all = append(all, m.Text)
			}
			return strings.Join(all, "\n")
		}
		return k
	}
	ts.list = []*talk{
		conversation("dm by number", people[0], "", false),
		conversation("dm by LID", people[1], "", false),
		conversation("dm by number, then by LID", people[2], "", true),
		conversation("group by LID", people[0], byLID, false),
		conversation("group by number", people[1], byNumber, false),
	}
	t.Run("T11_a question is answered by quoting it", func(t *testing.T) {
		in := *ts.rig
		in.t = t
		owner.answersByQuoting(&in)
	})
	for n, k := range ts.list {
		t.Run(k.name, func(t *testing.T) { ts.play(t, n) })
	}
	t.Cleanup(func() {
		if c := s.Complaints(); len(c) > 0 {
			t.Errorf("the network complains: %q", c)
		}
	})
}
