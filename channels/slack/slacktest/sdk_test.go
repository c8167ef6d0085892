package slacktest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// TestSlackGoTalksToTheFake drives the fake with the library that bots are written with.
func TestSlackGoTalksToTheFake(t *testing.T) {
	t.Parallel()
	s := start(t, Options{PingEvery: 50 * time.Millisecond})
	api := slack.New(s.Team(0).Token, slack.OptionAPIURL(s.APIURL()), slack.OptionAppLevelToken(s.App().Token), slack.OptionHTTPClient(client(t)))
	ctx := within(t)
	who, err := api.AuthTestContext(ctx)
	if err != nil || who.UserID != s.Team(0).Bot.ID || who.Header.Get("X-OAuth-Scopes") == "" {
		t.Fatalf("auth.test: %+v, %v", who, err)
	}
	sm := socketmode.New(api, socketmode.OptionPingInterval(5*time.Second))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- sm.RunContext(running) }()
	wait(t, s, "the socket", func(v View) bool { return v.Sockets() == 1 })
	asked := s.Say(Say{Channel: dm, User: ana, Text: "hello"})
	for ev := range sm.Events {
		if ev.Type != socketmode.EventTypeEventsAPI {
			continue
		}
		outer := ev.Data.(slackevents.EventsAPIEvent)
		m, ok := outer.InnerEvent.Data.(*slackevents.MessageEvent)
		if !ok || m.TimeStamp != asked || m.ChannelType != "im" || outer.TeamID != s.Team(0).ID {
			t.Errorf("got %+v of %+v", outer.InnerEvent, outer)
		}
		if err := sm.AckCtx(ctx, ev.Request.EnvelopeID, nil); err != nil {
			t.Error(err)
		}
		break
	}
	wait(t, s, "the acknowledgement", func(v View) bool { return v.Acked(dm, asked) })
	sdkSends(ctx, t, s, api, asked)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("RunContext ended with %v", err)
	}
}

func sdkSends(ctx context.Context, t *testing.T, s *Server, api *slack.Client, asked string) {
	t.Helper()
	_, ts, err := api.PostMessageContext(ctx, dm, slack.MsgOptionMarkdownText("**hi**"), slack.MsgOptionTS(asked), slack.MsgOptionMetadata(slack.SlackMetadata{
		EventType: "parley", EventPayload: map[string]any{"token": "row-1"}}))
	if err != nil {
		t.Fatal(err)
	}
	page, _, _, err := api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{ChannelID: dm, Timestamp: asked, IncludeAllMetadata: true})
	if err != nil || len(page) != 2 || page[1].Timestamp != ts || page[1].Metadata.EventPayload["token"] != "row-1" {
		t.Errorf("read back %+v, %v", page, err)
	}
	if _, _, _, err := api.UpdateMessageContext(ctx, dm, ts, slack.MsgOptionText("new", false), slack.MsgOptionBlocks()); err != nil {
		t.Error(err)
	}
	_, sts, err := api.StartStreamContext(ctx, dm, slack.MsgOptionTS(asked), slack.MsgOptionMarkdownText("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := api.AppendStreamContext(ctx, dm, sts, slack.MsgOptionMarkdownText("b")); err != nil {
		t.Error(err)
	}
	if _, _, err := api.StopStreamContext(ctx, dm, sts); err != nil {
		t.Error(err)
	}
	if m, _ := s.View().Message(dm, sts); m.Shown() != "ab" {
		t.Errorf("the stream is %q", m.Shown())
	}
	file, err := api.UploadFileContext(ctx, slack.UploadFileParameters{Filename: "a.txt", FileSize: 3, Reader: strings.NewReader("abc"), Channel: dm, InitialComment: "here"})
	if err != nil {
		t.Fatal(err)
	}
	info, _, _, err := api.GetFileInfoContext(ctx, file.ID, 0, 0)
	if err != nil || len(info.Shares.Private[dm]) != 1 {
		t.Fatalf("files.info: %+v, %v", info, err)
	}
	var got bytes.Buffer
	if err := api.GetFileContext(ctx, info.URLPrivateDownload, &got); err != nil || got.String() != "abc" {
		t.Errorf("downloaded %q, %v", got.String(), err)
	}
	if err := api.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{ChannelID: dm, ThreadTS: asked, Status: "thinks"}); err != nil {
		t.Error(err)
	}
	_, _, err = api.PostMessageContext(ctx, "C0NONE", slack.MsgOptionText("x", false))
	var refused slack.SlackErrorResponse
	if !errors.As(err, &refused) || refused.Err != "channel_not_found" {
		t.Errorf("no such channel: %v", err)
	}
	s.AddFault(Fault{Method: "chat.postMessage", Do: Reply, Status: 429, After: 3 * time.Second, Times: 1})
	_, _, err = api.PostMessageContext(ctx, dm, slack.MsgOptionText("x", false))
	var slow *slack.RateLimitedError
	if !errors.As(err, &slow) || slow.RetryAfter != 3*time.Second {
		t.Errorf("told to flood: %v", err)
	}
}
