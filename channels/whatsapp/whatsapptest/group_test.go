package whatsapptest_test

import (
	"errors"
	"slices"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley/channels/whatsapp/whatsapptest"
)

// TestGroupMessagesUseSenderKeys: the first message of a device brings its key, as an event of its own with the same id.
func TestGroupMessagesUseSenderKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	id := r.s.Write(whatsapptest.In{From: ana, Group: group, Text: "hello all"})
	m := r.message("hello all")
	if m.Info.ID != id || !m.Info.IsGroup || m.Info.Chat != groupJID() || m.Info.Sender.Server != types.HiddenUserServer || m.Info.SenderAlt.User != ana {
		t.Errorf("info %+v", m.Info)
	}
	key := wait(r, "the event of the key", func(m *events.Message) bool { return m.Info.ID == id })
	if key.Message.GetSenderKeyDistributionMessage() == nil {
		t.Errorf("the other event with the id is %v", key.Message)
	}
	r.s.Write(whatsapptest.In{From: ben, Group: group, Text: "and I"})
	r.message("and I")
	r.send(groupJID(), "welcome")
	r.send(groupJID(), "both")
	for _, who := range []string{ana, ben} {
		var texts []string
		for _, m := range r.s.Chat(who, groupJID()) {
			texts = append(texts, m.Text)
		}
		if want := []string{"hello all", "and I", "welcome", "both"}; !slices.Equal(texts, want) {
			t.Errorf("%s sees %q, want %q", who, texts, want)
		}
	}
	r.clean()
}

func TestGroupsAreRefusedToStrangers(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	r.send(groupJID(), "I am in")
	r.s.Leave(groupJID())
	if _, err := r.cli.SendMessage(t.Context(), groupJID(), &waE2E.Message{Conversation: proto.String("still?")}); !errors.Is(err, whatsmeow.ErrServerReturnedError) {
		t.Errorf("sending to a group that we left gave %v", err)
	}
	r.stop()
	r.connect() // its cache is empty now
	if _, err := r.cli.GetGroupInfo(t.Context(), groupJID()); !errors.Is(err, whatsmeow.ErrNotInGroup) {
		t.Errorf("asking for a group that we left gave %v", err)
	}
	if _, err := r.cli.GetGroupInfo(t.Context(), types.NewJID("1", types.GroupServer)); !errors.Is(err, whatsmeow.ErrGroupNotFound) {
		t.Errorf("asking for no group gave %v", err)
	}
	if got := len(r.s.Sent(groupJID())); got != 1 {
		t.Errorf("people see %d messages", got)
	}
}

func TestRepliesMentionsAndReactions(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	ours := r.send(groupJID(), "who wants tea?")
	me := r.s.Account()
	r.s.Write(whatsapptest.In{From: ana, Group: group, Text: "@" + me.LID + " I do", Mention: []string{me.Phone}, ReplyTo: ours})
	m := r.message("@" + me.LID + " I do")
	ctx := m.Message.GetExtendedTextMessage().GetContextInfo()
	if ctx.GetStanzaID() != ours || ctx.GetParticipant() != me.Hidden().String() || !slices.Equal(ctx.GetMentionedJID(), []string{me.Hidden().String()}) ||
		text(ctx.GetQuotedMessage()) != "who wants tea?" {
		t.Errorf("context %v", ctx)
	}
	r.s.React(whatsapptest.In{From: ben, Group: group, Text: "👍"}, ours)
	re := wait(r, "a reaction", func(m *events.Message) bool { return m.Message.GetReactionMessage() != nil })
	if k := re.Message.GetReactionMessage().GetKey(); k.GetID() != ours || k.GetFromMe() || k.GetParticipant() != me.Hidden().String() {
		t.Errorf("key %v", k)
	}
	first := r.s.Chat(ana, groupJID())[0]
	if first.Reactions[ben] != "👍" {
		t.Errorf("Ana sees %+v", first)
	}
	if _, err := r.cli.SendMessage(t.Context(), groupJID(), r.cli.BuildReaction(groupJID(), m.Info.Sender, m.Info.ID, "🫖")); err != nil {
		t.Fatal(err)
	}
	if seen := r.s.Chat(ben, groupJID())[1]; seen.Reactions[me.Phone] != "🫖" || seen.ReplyTo != ours || seen.Quoted != "who wants tea?" {
		t.Errorf("Ben sees %+v", seen)
	}
	r.clean()
}

func TestEditsAndRevokesInBothDirections(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.connect()
	id := r.s.Write(whatsapptest.In{From: ana, Text: "helo"})
	r.message("helo")
	r.s.Edit(whatsapptest.In{From: ana, Text: "hello"}, id)
	e := wait(r, "an edit", func(m *events.Message) bool { return m.IsEdit })
	if p := e.Message.GetProtocolMessage(); p.GetKey().GetID() != id || text(p.GetEditedMessage()) != "hello" {
		t.Errorf("edit %v", e.Message)
	}
	r.s.Revoke(whatsapptest.In{From: ana}, id)
	wait(r, "a revoke", func(m *events.Message) bool {
		return m.Message.GetProtocolMessage().GetType() == waE2E.ProtocolMessage_REVOKE && m.Message.GetProtocolMessage().GetKey().GetID() == id
	})
	chat := pn(ana)
	ours := r.send(chat, "one")
	if _, err := r.cli.SendMessage(t.Context(), chat, r.cli.BuildEdit(chat, ours, &waE2E.Message{Conversation: proto.String("two")})); err != nil {
		t.Fatal(err)
	}
	if got := r.s.Sent(chat); len(got) != 1 || got[0].Text != "two" || !got[0].Edited || got[0].ID != ours {
		t.Errorf("Ana sees %+v", got)
	}
	r.clean()
	r.s.Advance(whatsmeow.EditWindow + 1e9)
	if _, err := r.cli.SendMessage(t.Context(), chat, r.cli.BuildEdit(chat, ours, &waE2E.Message{Conversation: proto.String("three")})); err != nil {
		t.Fatal(err)
	}
	if got := r.s.Sent(chat); got[0].Text != "two" || len(r.s.Complaints()) != 1 {
		t.Errorf("after the edit window Ana sees %+v, complaints %q", got, r.s.Complaints())
	}
	if _, err := r.cli.SendMessage(t.Context(), chat, r.cli.BuildRevoke(chat, types.EmptyJID, ours)); err != nil {
		t.Fatal(err)
	}
	if got := r.s.Sent(chat); len(got) != 0 {
		t.Errorf("after the revoke Ana sees %+v", got)
	}
}
