package discordtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	guildID   = "900000000000000001"
	generalID = "900000000000000002"
	dmID      = "900000000000000003"
	anaID     = "800000000000000001"
	benID     = "800000000000000002"
	roleID    = "700000000000000001"
)

// newWorld is a server with two people, a guild and a conversation.
func newWorld(t *testing.T, o Options) *Server {
	t.Helper()
	s := Start(t, o)
	s.AddUser(User{ID: anaID, Name: "ana", Global: "Ana"})
	s.AddUser(User{ID: benID, Name: "ben", Global: "Ben"})
	s.AddGuild(Guild{ID: guildID, Name: "Friends", Roles: []Role{{roleID, "ops"}}, Members: map[string][]string{anaID: {roleID}, benID: nil}})
	s.AddChannel(Channel{ID: generalID, Type: Text, Guild: guildID, Name: "general"})
	s.AddChannel(Channel{ID: dmID, Type: Direct, With: anaID})
	return s
}

// sdk is a client that somebody else wrote, with everything it hears.
type sdk struct {
	*discordgo.Session
	t      *testing.T
	events chan *discordgo.Event
	ended  chan struct{}
}

func newSDK(t *testing.T, s *Server) *sdk {
	t.Helper()
	d, err := discordgo.New("Bot " + s.Token())
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	d.Client = &http.Client{Transport: s.Transport(tr)}
	d.Dialer = &websocket.Dialer{}
	d.SyncEvents, d.ShouldReconnectOnError = true, false
	d.Identify.Intents = discordgo.IntentsAllWithoutPrivileged | discordgo.IntentMessageContent
	c := &sdk{Session: d, t: t, events: make(chan *discordgo.Event, 1000), ended: make(chan struct{}, 10)}
	d.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) { c.events <- e })
	d.AddHandler(func(*discordgo.Session, *discordgo.Disconnect) { c.ended <- struct{}{} })
	t.Cleanup(func() {
		_ = d.CloseWithCode(4000) // it may be closed already
		tr.CloseIdleConnections()
	})
	return c
}

func (c *sdk) open() {
	c.t.Helper()
	if err := c.Open(); err != nil {
		c.t.Fatal(err)
	}
}

// next is the next event of a name.
func (c *sdk) next(name string) *discordgo.Event {
	c.t.Helper()
	late := time.NewTimer(15 * time.Second)
	defer late.Stop()
	for {
		select {
		case e := <-c.events:
			if e.Type == name {
				return e
			}
		case <-late.C:
			c.t.Fatalf("no %s came", name)
		}
	}
}

func TestSDKTalksToTheFake(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	c := newSDK(t, s)
	c.open()
	if e := c.next("READY").Struct.(*discordgo.Ready); e.SessionID == "" || e.User.ID != s.Bot().ID || len(e.Guilds) != 1 {
		t.Errorf("READY %+v", e)
	}
	if e := c.next("GUILD_CREATE").Struct.(*discordgo.GuildCreate); e.Name != "Friends" || len(e.Channels) != 1 || e.Roles[1].Name != "ops" {
		t.Errorf("GUILD_CREATE %+v", e.Guild)
	}
	id := s.Write(In{Channel: generalID, From: anaID, Text: "hello <@" + s.Bot().ID + "> 😀", Files: []File{{Name: "a.txt", MIME: "text/plain", Data: []byte("abc")}}})
	m := c.next("MESSAGE_CREATE").Struct.(*discordgo.MessageCreate)
	if m.ID != id || m.GuildID != guildID || m.Member.Roles[0] != roleID || m.Mentions[0].ID != s.Bot().ID || m.Author.GlobalName != "Ana" || m.Attachments[0].Size != 3 {
		t.Errorf("MESSAGE_CREATE %+v", m.Message)
	}
	get, err := http.Get(m.Attachments[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(get.Body)
	_ = get.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err != nil || string(data) != "abc" {
		t.Errorf("CDN gave %q, %v", data, err)
	}
	sent, err := c.ChannelMessageSendComplex(generalID, &discordgo.MessageSend{Content: "sure?", Reference: m.Reference(), Components: []discordgo.MessageComponent{
		discordgo.ActionsRow{Components: []discordgo.MessageComponent{discordgo.Button{Label: "Yes", CustomID: "y:1", Style: discordgo.PrimaryButton}}}}})
	if err != nil || sent.MessageReference.MessageID != id || sent.ReferencedMessage.ID != id {
		t.Fatalf("reply %+v %v", sent, err)
	}
	act, ok := s.Press(generalID, sent.ID, benID, "y:1")
	if !ok {
		t.Fatal("no button")
	}
	i := c.next("INTERACTION_CREATE").Struct.(*discordgo.InteractionCreate)
	if i.ID != act || i.Member.User.ID != benID || i.MessageComponentData().CustomID != "y:1" || i.Message.ID != sent.ID {
		t.Errorf("INTERACTION_CREATE %+v", i.Interaction)
	}
	err = c.InteractionRespond(i.Interaction, &discordgo.InteractionResponse{Type: discordgo.InteractionResponseUpdateMessage, Data: &discordgo.InteractionResponseData{Content: "Ben said yes", Components: []discordgo.MessageComponent{}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Message(generalID, sent.ID); got.Text != "Ben said yes" || len(got.Buttons) != 0 {
		t.Errorf("after the press people see %+v", got)
	}
	if err := c.InteractionRespond(i.Interaction, &discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredMessageUpdate}); code(err) != 40060 {
		t.Errorf("second answer: %v", err)
	}
	if _, err := c.ChannelMessageEdit(generalID, sent.ID, "later"); err != nil {
		t.Error(err)
	}
	if e := c.next("MESSAGE_UPDATE").Struct.(*discordgo.MessageUpdate); e.EditedTimestamp == nil {
		t.Errorf("MESSAGE_UPDATE %+v", e.Message)
	}
	if err := c.MessageReactionAdd(generalID, id, "👀"); err != nil {
		t.Error(err)
	}
	if err := c.ChannelMessageDelete(generalID, sent.ID); err != nil {
		t.Error(err)
	}
	if e := c.next("MESSAGE_DELETE").Struct.(*discordgo.MessageDelete); e.ID != sent.ID {
		t.Errorf("MESSAGE_DELETE %+v", e.Message)
	}
	if got, _ := s.Message(generalID, id); len(got.Reactions["👀"]) != 1 {
		t.Errorf("reactions %v", got.Reactions)
	}
}

// code is the JSON error code of a REST error; -1: it is none.
func code(err error) int {
	var e *discordgo.RESTError
	if errors.As(err, &e) && e.Message != nil {
		return e.Message.Code
	}
	return -1
}

func TestSDKUploadsMenusAndThreads(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	c := newSDK(t, s)
	c.open()
	m, err := c.ChannelFileSendWithMessage(dmID, "the table", "t.csv", strings.NewReader("a,b"))
	if err != nil || m.Attachments[0].Filename != "t.csv" {
		t.Fatalf("upload %+v %v", m, err)
	}
	if got := s.Sent(dmID); len(got) != 1 || got[0].Text != "the table" || string(got[0].Files[0].Data) != "a,b" {
		t.Errorf("people see %+v", got)
	}
	big := bytes.Repeat([]byte{'x'}, 10<<20+1)
	if _, err := c.ChannelFileSend(dmID, "big", bytes.NewReader(big)); code(err) != 40005 {
		t.Errorf("too large: %v", err)
	}
	cmd := &discordgo.ApplicationCommand{Name: "new", Description: "start afresh", Options: []*discordgo.ApplicationCommandOption{{Type: discordgo.ApplicationCommandOptionString, Name: "text", Description: "words"}}}
	if _, err := c.ApplicationCommandBulkOverwrite(s.App(), "", []*discordgo.ApplicationCommand{cmd}); err != nil || s.Menu("")[0] != [2]string{"new", "start afresh"} {
		t.Errorf("commands: %v %v", s.Menu(""), err)
	}
	id, ok := s.Command(dmID, anaID, "new", "please")
	if _, other := s.Command(dmID, anaID, "old", ""); other || !ok {
		t.Errorf("a command that is not registered can be run, or the registered one cannot")
	}
	i := c.next("INTERACTION_CREATE").Struct.(*discordgo.InteractionCreate)
	if i.User.ID != anaID || i.Member != nil || i.ApplicationCommandData().Options[0].StringValue() != "please" {
		t.Errorf("command %+v", i.Interaction)
	}
	if err := c.InteractionRespond(i.Interaction, &discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredChannelMessageWithSource, Data: &discordgo.InteractionResponseData{Flags: discordgo.MessageFlagsEphemeral}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.FollowupMessageCreate(i.Interaction, true, &discordgo.WebhookParams{Content: "done"}); err != nil {
		t.Fatal(err)
	}
	if a := s.Answer(id); a.Type != 5 || a.Late || a.Original.Text != "done" || a.Original.For != anaID {
		t.Errorf("the answer is %+v", a)
	}
	text := "changed"
	if _, err := c.InteractionResponseEdit(i.Interaction, &discordgo.WebhookEdit{Content: &text}); err != nil || s.Answer(id).Original.Text != "changed" {
		t.Errorf("edit of the answer: %v", err)
	}
	th, err := c.ThreadStart(generalID, "Ops", discordgo.ChannelTypeGuildPublicThread, 60)
	if err != nil || th.ParentID != generalID || !th.IsThread() {
		t.Fatalf("thread %+v %v", th, err)
	}
	if e := c.next("THREAD_CREATE").Struct.(*discordgo.ThreadCreate); e.ID != th.ID {
		t.Errorf("THREAD_CREATE %+v", e.Channel)
	}
	if _, err := c.ChannelMessageSend(th.ID, "inside"); err != nil || len(s.Sent(th.ID)) != 1 {
		t.Errorf("send into a thread: %v", err)
	}
	if dm, err := c.UserChannelCreate(anaID); err != nil || dm.ID != dmID {
		t.Errorf("the conversation is %+v %v", dm, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	c := newSDK(t, s)
	s.AddChannel(Channel{ID: "900000000000000009", Type: Text, Guild: guildID, Name: "secret"})
	s.Deny("900000000000000009", Denied{See: true})
	s.AddChannel(Channel{ID: "900000000000000008", Type: Text, Guild: guildID, Name: "news"})
	s.Deny("900000000000000008", Denied{Send: true})
	s.AddChannel(Channel{ID: "900000000000000007", Type: Direct, With: benID})
	s.Block("900000000000000007", true)
	theirs := s.Write(In{Channel: dmID, From: anaID, Text: "mine"})
	send := func(chat string, m *discordgo.MessageSend) error {
		_, err := c.ChannelMessageSendComplex(chat, m)
		return err
	}
	row := func(n int, id string) []discordgo.MessageComponent {
		var all []discordgo.MessageComponent
		for i := range n {
			all = append(all, discordgo.Button{Label: "b", CustomID: id + strings.Repeat("x", i), Style: discordgo.PrimaryButton})
		}
		return []discordgo.MessageComponent{discordgo.ActionsRow{Components: all}}
	}
	eleven := make([]*discordgo.MessageEmbed, 11)
	for i := range eleven {
		eleven[i] = &discordgo.MessageEmbed{Title: "t"}
	}
	edit := func(chat, id string) error { _, err := c.ChannelMessageEdit(chat, id, "x"); return err }
	for name, tc := range map[string]struct {
		err  error
		code int
	}{
		"2000":               {send(dmID, &discordgo.MessageSend{Content: strings.Repeat("a", 2000)}), -1},
		"2001":               {send(dmID, &discordgo.MessageSend{Content: strings.Repeat("a", 2001)}), 50035},
		"empty":              {send(dmID, &discordgo.MessageSend{}), 50006},
		"unknown channel":    {send("1", &discordgo.MessageSend{Content: "x"}), 10003},
		"unseen channel":     {send("900000000000000009", &discordgo.MessageSend{Content: "x"}), 50001},
		"no permission":      {send("900000000000000008", &discordgo.MessageSend{Content: "x"}), 50013},
		"blocked":            {send("900000000000000007", &discordgo.MessageSend{Content: "x"}), 50007},
		"11 embeds":          {send(dmID, &discordgo.MessageSend{Embeds: eleven}), 50035},
		"6000 in embeds":     {send(dmID, &discordgo.MessageSend{Embeds: []*discordgo.MessageEmbed{{Description: strings.Repeat("a", 4000)}, {Description: strings.Repeat("a", 2001)}}}), 50035},
		"6 buttons":          {send(dmID, &discordgo.MessageSend{Content: "x", Components: row(6, "a")}), 50035},
		"custom_id of 101":   {send(dmID, &discordgo.MessageSend{Content: "x", Components: row(1, strings.Repeat("a", 101))}), 50035},
		"custom_id of 100":   {send(dmID, &discordgo.MessageSend{Content: "x", Components: row(1, strings.Repeat("a", 100))}), -1},
		"reply to nothing":   {send(dmID, &discordgo.MessageSend{Content: "x", Reference: &discordgo.MessageReference{MessageID: "1"}}), 50035},
		"edit of theirs":     {edit(dmID, theirs), 50005},
		"edit of nothing":    {edit(dmID, "1"), 10008},
		"delete of theirs":   {c.ChannelMessageDelete(dmID, theirs), 50003},
		"no emoji":           {c.MessageReactionAdd(dmID, theirs, "yes"), 10014},
		"bulk delete of one": {c.ChannelMessagesBulkDelete(generalID, []string{"1"}), -1}, // the library deletes one by itself
	} {
		if name == "bulk delete of one" {
			continue
		}
		if got := code(tc.err); got != tc.code || tc.code == -1 && tc.err != nil {
			t.Errorf("%s: %v, want code %d", name, tc.err, tc.code)
		}
	}
	c.Token = "Bot wrong"
	if err := send(dmID, &discordgo.MessageSend{Content: "x"}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("wrong token: %v", err)
	}
}

func TestNonceIsOneMessage(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	c := newSDK(t, s)
	send := func(nonce string, enforce bool) string {
		raw, err := c.RequestWithBucketID("POST", discordgo.EndpointChannelMessages(dmID), map[string]any{"content": "once", "nonce": nonce, "enforce_nonce": enforce}, "b")
		if err != nil {
			t.Fatal(err)
		}
		var m discordgo.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	first := send("n1", true)
	if again := send("n1", true); again != first {
		t.Errorf("the same nonce made %s, then %s", first, again)
	}
	if other := send("n1", false); other == first {
		t.Error("a nonce that is not enforced deduped")
	}
	s.AddFault(Fault{Route: "POST /channels/{channel}/messages", Do: CutAfter, Times: 1})
	if _, err := c.RequestWithBucketID("POST", discordgo.EndpointChannelMessages(dmID), map[string]any{"content": "swallowed", "nonce": "n2", "enforce_nonce": true}, "b"); err == nil {
		t.Error("the swallowed answer came")
	}
	send("n2", true)
	if got := s.Sent(dmID); len(got) != 3 || got[2].Text != "swallowed" {
		t.Errorf("people see %+v", got)
	}
}
