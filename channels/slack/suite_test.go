package slack_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

const (
	anaID   = "U0ANA00001"
	benID   = "U0BEN00001"
	anaDM   = "D0ANA00001"
	benDM   = "D0BEN00001"
	groupID = "C0GROUP001"
	deskID  = "C0DESK0001"
	command = "/parley"
)

func TestSuite(t *testing.T) { channeltest.Run(t, harness{}) }

// harness joins the suite to the adapter over the fake Slack.
type harness struct{}

func (harness) Network() channels.Network { return "slack" }

func (harness) World(channeltest.T) channeltest.World {
	s := slacktest.New(slacktest.Options{
		NoLimits: true, PingEvery: 200 * time.Millisecond,
		// An event that was not taken comes again for as long as a check may last.
		AckWithin: 2 * time.Second, Retries: slices.Repeat([]time.Duration{50 * time.Millisecond}, 1000),
		SlowShares: 1,
	})
	bot := s.Team(0).Bot.ID
	s.AddUser(slacktest.User{ID: anaID, Name: "ana", Real: "Ana Lima"})
	s.AddUser(slacktest.User{ID: benID, Name: "ben", Real: "Ben"})
	s.AddChannel(slacktest.Channel{ID: anaDM, Kind: slacktest.IM, Members: []string{anaID}})
	s.AddChannel(slacktest.Channel{ID: benDM, Kind: slacktest.IM, Members: []string{benID}})
	s.AddChannel(slacktest.Channel{ID: groupID, Name: "friends", Kind: slacktest.Public, Members: []string{anaID, benID, bot}})
	s.AddChannel(slacktest.Channel{ID: deskID, Name: "desk", Kind: slacktest.Private, Members: []string{anaID, benID, bot}})
	return &world{Server: s}
}

// world is the fake with the people of the suite in it.
type world struct {
	*slacktest.Server

	mu   sync.Mutex
	root string // of the thread in the group
}

func (w *world) Open(d channels.Deps) (channels.Channel, error) {
	f := slack.Factory()
	o := f.Options().(*slack.Options)
	o.BotToken, o.AppToken, o.APIURL = channels.Secret(w.Team(0).Token), channels.Secret(w.App().Token), w.APIURL()
	ch, err := f.New("work", o, d)
	if err == nil {
		ch.(*slack.Channel).Hurry()
	}
	return ch, err
}

// Account: one app may serve several workspaces; in the suite it serves one, which with the bot's user is the account.
func (w *world) Account() channels.AccountID {
	t := w.Team(0)
	return channels.AccountID(t.ID + "/" + t.Bot.ID)
}

// Secrets: the tokens, their secret halves and the signing secret.
func (w *world) Secrets() []string {
	bot, app := w.Team(0).Token, w.App()
	return []string{bot, bot[strings.LastIndex(bot, "-")+1:], app.Token, app.Token[strings.LastIndex(app.Token, "-")+1:], app.SigningSecret}
}

func (w *world) User(who channeltest.Who) channels.UserID {
	if who == channeltest.Ben {
		return benID
	}
	return anaID
}

// Broken: Slack takes any text.
func (w *world) Broken() string { return "" }

func chat(p channeltest.Place) string {
	switch p {
	case channeltest.OtherDM:
		return benDM
	case channeltest.Group, channeltest.Echo:
		return groupID // every room gives the bot its own messages back
	case channeltest.Thread:
		return deskID
	}
	return anaDM
}

// thread is the root of the suite's thread; it is written when it is first asked for. To write it is to be heard, so the
// root stands in a channel of its own.
func (w *world) thread() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.root == "" {
		w.root = w.Say(slacktest.Say{Channel: deskID, User: anaID, Text: "root"})
	}
	return w.root
}

func (w *world) Address(p channeltest.Place) channels.Address {
	a := channels.Address{Network: "slack", Account: w.Account(), Kind: channels.DM, Peer: channels.PeerID(chat(p))}
	switch p {
	case channeltest.Group, channeltest.Echo:
		a.Kind = channels.Room
	case channeltest.Thread:
		a.Kind, a.Thread = channels.Room, channels.ThreadID(w.thread())
	}
	return a
}

func (w *world) Act(e channeltest.Event) (channels.MessageID, bool) {
	ch, who := chat(e.Place), string(w.User(e.Who))
	switch e.Do {
	case channeltest.Write, channeltest.Fence:
		return w.write(e), true
	case channeltest.Command:
		w.command(e)
		return "", true
	case channeltest.EditIt:
		w.Edit(ch, string(e.Target), e.Text)
		return e.Target, true
	case channeltest.DeleteIt:
		w.Server.Delete(ch, string(e.Target))
		return e.Target, true
	case channeltest.ReactTo:
		w.React(ch, string(e.Target), who, names()[e.Text])
		return e.Target, true
	case channeltest.PressOn:
		return e.Target, w.Press(ch, string(e.Target), who, e.Text) != ""
	case channeltest.Garbage:
		w.Event(0, `{"type":"message","channel":["not","a","string"],"ts":{},"user":17,"blocks":"none"}`)
		return "", true
	}
	return "", w.trouble(e)
}

// command uses /parley; in Slack a command for another app never reaches this one.
func (w *world) command(e channeltest.Event) {
	if e.Mention {
		return
	}
	w.Server.Command(chat(e.Place), string(w.User(e.Who)), command, strings.TrimPrefix(e.Text, "/"))
}

// names are the emoji of the suite as Slack calls them.
func names() map[string]string { return map[string]string{"👍": "+1", "👀": "eyes"} }

// trouble makes the network fail; false: it is a deed that Slack does not know.
func (w *world) trouble(e channeltest.Event) bool {
	spoil := slacktest.Fault{Method: "chat.postMessage", Times: 1}
	switch e.Do {
	case channeltest.Flood:
		spoil.Do, spoil.Status, spoil.After = slacktest.Reply, 429, e.After
	case channeltest.Trouble:
		spoil.Do, spoil.Status = slacktest.Reply, 500
	case channeltest.BadAnswer:
		spoil.Do, spoil.Status, spoil.Body = slacktest.Reply, 502, slacktest.BadGateway
	case channeltest.Swallow:
		spoil.Do = slacktest.CutAfter
	case channeltest.Block:
		w.Deny(chat(e.Place), "is_archived")
		return true
	case channeltest.Revoke:
		w.Server.Revoke(0, "token_revoked")
		w.RevokeApp("token_revoked")
		return true
	case channeltest.Freeze:
		w.Server.Freeze()
		return true
	case channeltest.Cut:
		return w.Server.Cut() == nil
	case channeltest.Down:
		w.Server.Down()
		return true
	case channeltest.Up:
		return w.Server.Up() == nil
	default:
		return false
	}
	w.AddFault(spoil)
	return true
}

func (w *world) write(e channeltest.Event) channels.MessageID {
	in := slacktest.Say{Channel: chat(e.Place), User: string(w.User(e.Who)), Text: e.Text, Thread: string(e.ReplyTo)}
	if e.Place == channeltest.Thread {
		in.Thread = w.thread()
	}
	if e.Mention {
		in.Text = "<@" + w.Team(0).Bot.ID + "> " + in.Text
	}
	if strings.Contains(in.Text, "@parley.example") { // clients write addresses as links
		in.Text = strings.ReplaceAll(in.Text, "x@parley.example", "<mailto:x@parley.example|x@parley.example>")
	}
	for _, f := range e.Files {
		in.Files = append(in.Files, slacktest.File{Name: f.Name, MIME: f.MIME, Data: f.Data})
	}
	return channels.MessageID(w.Say(in))
}

func (w *world) Acked(p channeltest.Place, id channels.MessageID) bool {
	return w.View().Acked(chat(p), string(id))
}

func (w *world) Sent(p channeltest.Place) []channeltest.Seen {
	var all []channeltest.Seen
	for _, m := range w.View().Sent(chat(p)) {
		if p == channeltest.Thread && m.ThreadTS != w.thread() {
			continue
		}
		s := channeltest.Seen{ID: channels.MessageID(m.TS), Text: m.Shown(), ReplyTo: channels.MessageID(m.ThreadTS), Previews: !m.NoUnfurl, Rings: m.Mentions()}
		for _, row := range m.Buttons() {
			var actions []channels.Action
			for _, b := range row {
				actions = append(actions, channels.Action{Label: b.Text, Value: b.Value})
			}
			s.Actions = append(s.Actions, actions)
		}
		for _, f := range m.Files {
			s.Files = append(s.Files, channeltest.File{Name: f.Name, MIME: f.MIME, Data: f.Data})
		}
		all = append(all, s)
	}
	return all
}

func (w *world) Reaction(p channeltest.Place, id channels.MessageID) string {
	m, _ := w.View().Message(chat(p), string(id))
	for _, r := range m.Reactions {
		if slices.Contains(r.Users, w.Team(0).Bot.ID) {
			for emoji, name := range names() {
				if name == r.Name {
					return emoji
				}
			}
		}
	}
	return ""
}

func (w *world) Typing(p channeltest.Place) int {
	n := 0
	for _, s := range w.View().Statuses() {
		if s.Channel == chat(p) && s.Text != "" {
			n++
		}
	}
	return n
}

// Menu: Slack's commands stand in the manifest.
func (w *world) Menu() []channels.MenuItem { return nil }

func (w *world) Wait(ctx context.Context, cond func() bool) error {
	return w.WaitFor(ctx, func(slacktest.View) bool { return cond() })
}
