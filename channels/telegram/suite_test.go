package telegram_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
)

func TestSuite(t *testing.T) { channeltest.Run(t, harness{}) }

// harness joins the suite to the adapter over the fake Bot API.
type harness struct{}

func (harness) Network() channels.Network { return telegram.Network }

const (
	anaID   = int64(4201)
	benID   = int64(4202)
	groupID = int64(-5001)
	movedID = int64(-1002000005001)
	forumID = int64(-1002000006001)
	newsID  = int64(-1002000007001)
)

func (harness) World(channeltest.T) channeltest.World {
	s := telegramtest.New(telegramtest.Options{NoLimits: true})
	w := &world{Server: s, group: groupID, updates: map[string]int64{}}
	s.AddPrivate(person(channeltest.Ana))
	s.AddPrivate(person(channeltest.Ben))
	s.AddChat(telegramtest.Chat{ID: groupID, Kind: telegramtest.Group, Title: "Friends"})
	s.AddChat(telegramtest.Chat{ID: forumID, Kind: telegramtest.Supergroup, Title: "Forum", Forum: true})
	s.AddChat(telegramtest.Chat{ID: newsID, Kind: telegramtest.Channel, Title: "News"})
	w.topic = s.AddTopic(forumID, "Ops")
	return w
}

func person(w channeltest.Who) telegramtest.User {
	if w == channeltest.Ben {
		return telegramtest.User{ID: benID, First: "Ben", Username: "ben_writes"}
	}
	return telegramtest.User{ID: anaID, First: "Ana", Last: "Lima", Username: "ana_writes"}
}

// world is the fake with the people of the suite in it.
type world struct {
	*telegramtest.Server
	topic int64

	mu      sync.Mutex
	group   int64
	updates map[string]int64 // update id by chat and message
}

func (w *world) Open(d channels.Deps) (channels.Channel, error) {
	f := telegram.Factory()
	o := f.Options()
	options(o.(*telegram.Options), w.Token(), w.URL())
	return f.New("tg", o, d)
}

// options fills in the section of the configuration.
func options(o *telegram.Options, token, url string) {
	o.Token = telegram.Secret(token)
	o.APIURL = url
}

func (w *world) Account() channels.AccountID {
	return channels.AccountID(strconv.FormatInt(w.Bot().ID, 10))
}

// Secrets: the token and its secret half, as it is and as it may be escaped.
func (w *world) Secrets() []string {
	_, half, _ := strings.Cut(w.Token(), ":")
	return []string{w.Token(), half}
}

func (w *world) User(who channeltest.Who) channels.UserID {
	return channels.UserID(strconv.FormatInt(person(who).ID, 10))
}

func (w *world) Broken() string { return "<b>never closed" }

func (w *world) chat(p channeltest.Place) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch p {
	case channeltest.OtherDM:
		return benID
	case channeltest.Group:
		return w.group
	case channeltest.Thread:
		return forumID
	case channeltest.Echo:
		return newsID
	}
	return anaID
}

func (w *world) Address(p channeltest.Place) channels.Address {
	a := channels.Address{Network: telegram.Network, Account: w.Account(), Kind: channels.DM, Peer: channels.PeerID(strconv.FormatInt(w.chat(p), 10))}
	switch p {
	case channeltest.Group:
		a.Kind = channels.Group
	case channeltest.Echo:
		a.Kind = channels.Room
	case channeltest.Thread:
		a.Kind = channels.Group
		a.Thread = channels.ThreadID(strconv.FormatInt(w.topic, 10))
	}
	return a
}

func (w *world) Act(e channeltest.Event) (channels.MessageID, bool) {
	switch e.Do {
	case channeltest.Write, channeltest.Fence:
		return w.write(e), true
	case channeltest.Command:
		if e.Mention {
			name, args, _ := strings.Cut(e.Text, " ")
			e.Text = strings.TrimSpace(name + "@another_bot " + args)
		}
		e.Mention = false
		return w.write(e), true
	case channeltest.EditIt:
		w.EditIn(w.chat(e.Place), number(e.Target), e.Text)
		return e.Target, true
	case channeltest.ReactTo:
		return e.Target, w.React(w.chat(e.Place), number(e.Target), person(e.Who), "", e.Text) != 0
	case channeltest.PressOn:
		w.Press(w.chat(e.Place), number(e.Target), person(e.Who), e.Text)
		return e.Target, true
	case channeltest.Garbage:
		w.Raw("message", `{"message_id":"not a number","chat":[],"date":{}}`)
		return "", true
	case channeltest.MoveRoom:
		w.Migrate(groupID, movedID)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.group = movedID
		return "", true
	}
	return "", w.trouble(e)
}

// trouble makes the network fail; false: it is a deed that Telegram does not know.
func (w *world) trouble(e channeltest.Event) bool {
	spoil := telegramtest.Fault{Method: "sendMessage", Times: 1}
	switch e.Do {
	case channeltest.Flood:
		spoil.Do, spoil.Status, spoil.After = telegramtest.Reply, 429, e.After
	case channeltest.Trouble:
		spoil.Do, spoil.Status = telegramtest.Reply, 500
	case channeltest.BadAnswer:
		spoil.Do, spoil.Status, spoil.Body = telegramtest.Reply, 502, telegramtest.BadGateway
	case channeltest.Swallow:
		spoil.Do = telegramtest.CutAfter
	case channeltest.Block:
		w.Server.Block(w.chat(e.Place))
		return true
	case channeltest.Revoke:
		w.Server.Revoke()
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

func number(id channels.MessageID) int64 {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return 0 // no message has it
	}
	return n
}

func messageID(n int64) channels.MessageID { return channels.MessageID(strconv.FormatInt(n, 10)) }

func (w *world) write(e channeltest.Event) channels.MessageID {
	in := telegramtest.In{Chat: w.chat(e.Place), From: person(e.Who), Text: e.Text, ReplyTo: number(e.ReplyTo)}
	if e.Place == channeltest.Echo {
		in.From = telegramtest.User{} // in a channel nobody but the channel writes
	}
	if e.Place == channeltest.Thread {
		in.Thread = w.topic
	}
	if e.Mention {
		in.Text = "@" + w.Bot().Username + " " + in.Text
	}
	if len(e.Files) > 1 {
		var files []telegramtest.File
		for _, f := range e.Files {
			files = append(files, incoming(f))
		}
		ids := w.Album(in, files...)
		return messageID(ids[0])
	}
	if len(e.Files) == 1 {
		in.File = incoming(e.Files[0])
	}
	update, id := w.Inject(in)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.updates[fmt.Sprint(in.Chat, "/", id)] = update
	return messageID(id)
}

func incoming(f channeltest.File) telegramtest.File {
	kinds := map[string]string{"file": "document", "image": "photo", "voice": "voice", "audio": "audio", "video": "video"}
	return telegramtest.File{Type: kinds[f.Kind], Name: f.Name, MIME: f.MIME, Data: f.Data}
}

func (w *world) Acked(p channeltest.Place, id channels.MessageID) bool {
	key := fmt.Sprint(w.chat(p), "/", id)
	w.mu.Lock()
	update := w.updates[key]
	w.mu.Unlock()
	return update != 0 && w.View().Confirmed() >= update
}

func (w *world) Sent(p channeltest.Place) []channeltest.Seen {
	var all []channeltest.Seen
	for _, m := range w.View().Sent(w.chat(p)) {
		if p == channeltest.Thread && m.Thread != w.topic {
			continue
		}
		s := channeltest.Seen{ID: messageID(m.ID), Text: m.Text, Previews: !m.NoPreview} // Telegram has no way to call everybody
		if m.ReplyTo != 0 {
			s.ReplyTo = messageID(m.ReplyTo)
		}
		for _, row := range m.Buttons {
			var actions []channels.Action
			for _, b := range row {
				actions = append(actions, channels.Action{Label: b.Text, Value: b.Data})
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
	m, _ := w.View().Message(w.chat(p), number(id))
	return m.Reaction
}

func (w *world) Typing(p channeltest.Place) int { return len(w.View().Actions(w.chat(p))) }

func (w *world) Menu() []channels.MenuItem {
	var all []channels.MenuItem
	for _, c := range w.View().Commands() {
		all = append(all, channels.MenuItem{Name: c.Name, Help: c.Help})
	}
	return all
}

func (w *world) Wait(ctx context.Context, cond func() bool) error {
	return w.WaitFor(ctx, func(telegramtest.View) bool { return cond() })
}
