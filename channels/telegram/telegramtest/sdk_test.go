package telegramtest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// newSDK is a client that somebody else wrote.
func newSDK(tb testing.TB, s *Server) *tgbotapi.BotAPI {
	tb.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	tb.Cleanup(tr.CloseIdleConnections)
	bot, err := tgbotapi.NewBotAPIWithClient(s.Token(), s.URL()+"/bot%s/%s", &http.Client{Transport: tr})
	if err != nil {
		tb.Fatal(err)
	}
	return bot
}

func TestSDKTalksToTheFake(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{NoLimits: true})
	s.AddPrivate(ana)
	bot := newSDK(t, s)
	if bot.Self.UserName != "parley_test_bot" || !bot.Self.IsBot {
		t.Errorf("getMe: %+v", bot.Self)
	}
	s.Message(In{Chat: 42, From: ana, Text: "/start now 😀"})
	ups, err := bot.GetUpdates(tgbotapi.UpdateConfig{Timeout: 1})
	if err != nil || len(ups) != 1 {
		t.Fatalf("GetUpdates: %v %v", ups, err)
	}
	m := ups[0].Message
	if m.Command() != "start" || m.CommandArguments() != "now 😀" || m.From.ID != 42 || !m.Chat.IsPrivate() || m.Chat.UserName != "ana" {
		t.Errorf("message %+v", m)
	}
	out := tgbotapi.NewMessage(m.Chat.ID, "<b>bold</b> & co")
	out.ParseMode = "HTML"
	if _, err = bot.Send(out); err == nil || !strings.Contains(err.Error(), "can't parse entities") {
		t.Errorf("bad HTML: %v", err)
	}
	out.Text, out.ReplyToMessageID = "<b>bold</b> &amp; co", m.MessageID
	out.ReplyMarkup = tgbotapi.NewInlineKeyboardMarkup([]tgbotapi.InlineKeyboardButton{tgbotapi.NewInlineKeyboardButtonData("Yes", "y:1")})
	sent, err := bot.Send(out)
	if err != nil {
		t.Fatal(err)
	}
	if sent.Text != "bold & co" || sent.ReplyToMessage.Text != m.Text || sent.Entities[0].Type != "bold" || sent.From.ID != bot.Self.ID {
		t.Errorf("sent %+v", sent)
	}
	cb := s.Press(42, int64(sent.MessageID), ana, "y:1")
	ups, err = bot.GetUpdates(tgbotapi.UpdateConfig{Offset: ups[0].UpdateID + 1})
	if err != nil || len(ups) != 1 || ups[0].CallbackQuery.Data != "y:1" || ups[0].CallbackQuery.Message.MessageID != sent.MessageID {
		t.Fatalf("callback: %+v %v", ups, err)
	}
	if _, err := bot.Request(tgbotapi.NewCallback(cb, "done")); err != nil || s.View().Answered(cb).Text != "done" {
		t.Errorf("answerCallbackQuery: %v", err)
	}
	if _, err := bot.Send(tgbotapi.NewEditMessageText(42, sent.MessageID, "later")); err != nil {
		t.Errorf("edit: %v", err)
	}
	if _, err := bot.Send(tgbotapi.NewEditMessageText(42, sent.MessageID, "later")); err == nil || !strings.Contains(err.Error(), "message is not modified") {
		t.Errorf("edit to the same: %v", err)
	}
	if _, err := bot.Request(tgbotapi.NewDeleteMessage(42, sent.MessageID)); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func TestSDKUploadsAndMenus(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{NoLimits: true})
	s.AddPrivate(ana)
	bot := newSDK(t, s)
	doc := tgbotapi.NewDocument(42, tgbotapi.FileBytes{Name: "a.txt", Bytes: []byte("hello")})
	sent, err := bot.Send(doc)
	if err != nil || sent.Document.FileName != "a.txt" || sent.Document.FileSize != 5 {
		t.Fatalf("document %+v %v", sent, err)
	}
	album := tgbotapi.NewMediaGroup(42, []any{
		tgbotapi.NewInputMediaPhoto(tgbotapi.FileBytes{Name: "1.png", Bytes: []byte("1")}),
		tgbotapi.NewInputMediaDocument(tgbotapi.FileID(sent.Document.FileID)),
	})
	msgs, err := bot.SendMediaGroup(album)
	if err != nil || len(msgs) != 2 || msgs[0].MediaGroupID == "" || msgs[0].MediaGroupID != msgs[1].MediaGroupID || len(msgs[0].Photo) != 2 {
		t.Fatalf("album %+v %v", msgs, err)
	}
	if _, err := bot.Request(tgbotapi.NewSetMyCommands(tgbotapi.BotCommand{Command: "new", Description: "fresh start"})); err != nil {
		t.Fatal(err)
	}
	cmds, err := bot.GetMyCommands()
	if err != nil || len(cmds) != 1 || cmds[0].Command != "new" || s.View().Commands()[0].Help != "fresh start" {
		t.Errorf("commands %+v %v", cmds, err)
	}
	s.Block(42)
	_, err = bot.Send(tgbotapi.NewMessage(42, "x"))
	if e, ok := err.(*tgbotapi.Error); !ok || e.Code != 403 {
		t.Errorf("blocked: %v", err)
	}
}

func TestSDKReadsEveryKindOfUpdate(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	s.AddPrivate(ana)
	s.AddChat(Chat{ID: superID, Kind: Supergroup, Title: "F", Forum: true})
	s.AddChat(Chat{ID: -1003, Kind: Channel, Title: "News"})
	s.AddChat(Chat{ID: groupID, Kind: Group, Title: "G"})
	topic := s.AddTopic(superID, "Ops")
	id := s.Message(In{Chat: superID, From: ana, Text: "in a topic", Thread: topic})
	s.EditIn(superID, id, "edited")
	s.Message(In{Chat: -1003, Text: "post"})
	s.Member(groupID, ana, "member", "kicked")
	s.Album(In{Chat: 42, From: ana, Text: "two"}, File{Type: "photo", Data: []byte("1")}, File{Type: "voice", Data: []byte("2")})
	s.Migrate(groupID, -1004)
	ups, err := newSDK(t, s).GetUpdates(tgbotapi.UpdateConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range ups {
		switch {
		case u.EditedMessage != nil:
			got = append(got, "edit "+u.EditedMessage.Text)
		case u.ChannelPost != nil:
			got = append(got, "post "+u.ChannelPost.SenderChat.Title)
		case u.MyChatMember != nil:
			got = append(got, "member "+u.MyChatMember.NewChatMember.Status)
		case u.Message.MediaGroupID != "":
			got = append(got, "album "+u.Message.Caption)
		case u.Message.MigrateToChatID != 0:
			got = append(got, fmt.Sprint("to ", u.Message.MigrateToChatID))
		case u.Message.MigrateFromChatID != 0:
			got = append(got, fmt.Sprint("from ", u.Message.MigrateFromChatID))
		default:
			got = append(got, u.Message.Text)
		}
	}
	want := "in a topic|edit edited|post News|member kicked|album two|album |to -1004|from -500"
	if strings.Join(got, "|") != want {
		t.Errorf("updates:\n got %s\nwant %s", strings.Join(got, "|"), want)
	}
}

// BenchmarkEcho is what a load driver does: a message in, a poll, an answer out, over many chats.
func BenchmarkEcho(b *testing.B) {
	const chats, batch = 100, 100
	s := New(Options{NoLimits: true, Keep: 4})
	defer s.Close()
	bot := newSDK(b, s)
	for i := range int64(chats) {
		s.AddPrivate(User{ID: 1 + i, First: "P"})
	}
	for b.Loop() {
		for i := range int64(batch) {
			s.Message(In{Chat: 1 + i%chats, From: User{ID: 1 + i%chats, First: "P"}, Text: "hello there"})
		}
		ups, err := bot.GetUpdates(tgbotapi.UpdateConfig{Offset: int(s.View().Confirmed()) + 1})
		if err != nil || len(ups) != batch {
			b.Fatal(len(ups), err)
		}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < len(ups); i += 8 {
					if _, err := bot.MakeRequest("sendMessage", tgbotapi.Params{"chat_id": fmt.Sprint(ups[i].Message.Chat.ID), "text": "hello there"}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if _, err := bot.GetUpdates(tgbotapi.UpdateConfig{Offset: ups[len(ups)-1].UpdateID + 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkServe is the server's own share: sendMessage without a network.
func BenchmarkServe(b *testing.B) {
	s := New(Options{NoLimits: true, Keep: 4})
	defer s.Close()
	s.AddPrivate(ana)
	path := "/bot" + s.Token() + "/sendMessage"
	body := "chat_id=42&text=hello+there+%3Cb%3Eyou%3C%2Fb%3E&parse_mode=HTML"
	b.ReportAllocs()
	for b.Loop() {
		r, _ := http.NewRequestWithContext(context.Background(), "POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		s.ServeHTTP(nullWriter{http.Header{}}, r)
	}
}

type nullWriter struct{ h http.Header }

func (w nullWriter) Header() http.Header         { return w.h }
func (w nullWriter) WriteHeader(int)             {}
func (w nullWriter) Write(b []byte) (int, error) { return len(b), nil }

func TestWaitForGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.WaitFor(ctx, func(View) bool { return false }); err == nil {
		t.Error("WaitFor ended without its condition")
	}
}
