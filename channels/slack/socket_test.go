package slack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

// TestR03_DisturbedDeliveryLosesNothing: redelivery, broken sockets, lost acknowledgements and reordering in one.
func TestR03_DisturbedDeliveryLosesNothing(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{AckWithin: time.Second, Retries: slices.Repeat([]time.Duration{20 * time.Millisecond}, 1000), Seed: 7})
	b := start(t, s, nil)
	s.Disturb(slacktest.Faults{Redeliver: 0.3, Drop: 0.03, LoseAck: 0.05, Reorder: 4})
	const n = 200
	want := map[string]string{}
	for i := range n {
		text := fmt.Sprintf("m%03d", i)
		if i%2 == 0 {
			want["m:"+anaDM+":"+s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: text})] = text
		} else {
			want["m:"+groupID+":"+s.Say(slacktest.Say{Channel: groupID, User: benID, Text: "<@" + s.Team(0).Bot.ID + "> " + text})] = text
		}
	}
	b.until("a broken socket", func() bool { return s.View().Connected() > 3 })
	s.Disturb(slacktest.Faults{Redeliver: 0.3, LoseAck: 0.05}) // a line that breaks at every thirtieth event never gets through a crowd of them
	b.until("all messages", func() bool { return len(b.in.texts()) >= n })
	b.until("all acknowledgements", func() bool { return s.View().Pending() == 0 })
	b.in.mu.Lock()
	defer b.in.mu.Unlock()
	again, first := 0, map[string]channels.Inbound{}
	for _, in := range b.in.all {
		if want[in.Key] != in.Text {
			t.Errorf("%s has the text %q, want %q", in.Key, in.Text, want[in.Key])
		}
		old, twice := first[in.Key]
		if twice {
			again++
			if fmt.Sprintf("%+v", old) != fmt.Sprintf("%+v", in) {
				t.Errorf("given again as\n%+v\nwas\n%+v", in, old)
			}
		}
		first[in.Key] = in
	}
	if len(first) != n || again < n/4 {
		t.Errorf("%d keys, %d offers were repeats; want %d and 30 of 100", len(first), again, n)
	}
	t.Logf("%d messages, %d offers, %d sockets, %d acknowledgements of unknown envelopes", n, len(b.in.all), s.View().Connected(), s.View().Strays())
}

// TestMentionAndMessageAreEqual: the two events of one message give one value, whichever comes.
func TestMentionAndMessageAreEqual(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	s.AddChannel(slacktest.Channel{ID: "G0MPIM0001", Name: "mpdm-ana--ben-1", Kind: slacktest.MPIM, Members: []string{anaID, benID, s.Team(0).Bot.ID}})
	b := start(t, s, nil)
	for _, ch := range []string{groupID, "G0MPIM0001"} {
		for i := range 4 { // either event may come first
			s.Say(slacktest.Say{Channel: ch, User: anaID, Text: fmt.Sprintf("<@%s> look at %d, %s", s.Team(0).Bot.ID, i, ch)})
		}
	}
	b.until("both events of all", func() bool { return s.View().Pending() == 0 && len(b.in.texts()) == 8 })
	b.in.mu.Lock()
	defer b.in.mu.Unlock()
	byKey := map[string]string{}
	for _, in := range b.in.all {
		text := fmt.Sprintf("%+v", in)
		if old, ok := byKey[in.Key]; ok && old != text {
			t.Errorf("one message as\n%s\nand\n%s", old, text)
		}
		byKey[in.Key] = text
		want := channels.Room
		if in.To.Peer == "G0MPIM0001" {
			want = channels.Group
		}
		if !in.Mentioned || in.To.Kind != want || in.Title == "" {
			t.Errorf("%+v", in)
		}
	}
	if len(b.in.all) != 16 {
		t.Errorf("%d events, want two of each of 8 messages", len(b.in.all))
	}
}

func TestWorkspacesOfOneAppGetTheirOwn(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{Teams: []slacktest.Team{{}, {}, {}}, AckWithin: 300 * time.Millisecond, Retries: slices.Repeat([]time.Duration{50 * time.Millisecond}, 100)})
	f := slack.Factory()
	var all []*bench
	for n := range 2 {
		team := s.Team(n)
		s.AddUser(slacktest.User{ID: fmt.Sprintf("U0GUEST%03d", n), Name: "guest", Team: team.ID})
		s.AddChannel(slacktest.Channel{ID: fmt.Sprintf("D0GUEST%03d", n), Team: team.ID, Kind: slacktest.IM, Members: []string{fmt.Sprintf("U0GUEST%03d", n)}})
		b := bind(t, s, f, func(o *slack.Options) { o.BotToken = channels.Secret(team.Token) }).run()
		all = append(all, b)
	}
	for _, b := range all {
		b.until("ready", func() bool { return b.in.told(channels.Ready) != nil })
	}
	const each = 20
	for i := range each {
		for n := range 2 {
			s.Say(slacktest.Say{Channel: fmt.Sprintf("D0GUEST%03d", n), User: fmt.Sprintf("U0GUEST%03d", n), Text: fmt.Sprintf("t%d %d", n, i)})
		}
	}
	for n, b := range all {
		b.until("its own messages", func() bool { return len(b.in.texts()) == each })
		for _, text := range b.in.texts() {
			if !strings.HasPrefix(text, fmt.Sprintf("t%d ", n)) {
				t.Errorf("workspace %d was given %q", n, text)
			}
		}
	}
	if st := all[1].in.told(channels.Ready); !strings.Contains(st.Cause, "2 connections") && !strings.Contains(all[0].in.told(channels.Ready).Cause, "2 connections") {
		t.Errorf("nobody told that two connections share the events: %+v", st)
	}
	s.Event(2, `{"type":"message","channel":"D0STRANGE1","channel_type":"im","user":"U0STRANGE1","ts":"1700000000.000100","text":"who are you?"}`)
	b := all[0]
	b.until("the event of a workspace without a channel to be passed by", func() bool { return s.View().Pending() == 0 })
	if log := all[0].log.String() + all[1].log.String(); strings.Count(log, "that no channel has") != 1 {
		t.Errorf("a workspace without a channel: %s", log)
	}
}

func TestBadEventsArePassedOnAndBy(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{})
	b := start(t, s, nil)
	for _, inner := range []string{
		`{"type":"message","channel":["x"],"ts":{}}`, `"no object"`, `{"type":"message","channel":"` + groupID + `"}`,
		`{"type":"message","subtype":"channel_join","channel":"` + groupID + `","ts":"1700000000.000100","user":"` + anaID + `"}`,
		`{"type":"a_new_kind","whatever":[1,2]}`, `{"type":"message","channel":"` + groupID + `","channel_type":"channel","ts":"not a time","user":"` + anaID + `","text":"odd"}`,
	} {
		s.Event(0, inner)
	}
	s.RawFrame(`{"envelope_id":"no-such","type":"events_api","payload":17}`)
	s.RawFrame(`not json at all`)
	s.RawFrame(`{"envelope_id":"new-kind","type":"a_new_kind","payload":{}}`)
	s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "and on we go"})
	b.get("what comes after", withText("and on we go"))
	b.until("everything to be acknowledged", func() bool { return s.View().Pending() == 0 })
	unparsed := 0
	b.in.mu.Lock()
	for _, in := range b.in.all {
		if in.Kind == channels.KindUnparsed {
			unparsed++
			if len(in.Data) == 0 || in.Key == "" {
				t.Errorf("unparsed without its data: %+v", in)
			}
		}
	}
	b.in.mu.Unlock()
	if unparsed != 6 {
		t.Errorf("%d are unparsed, want 6", unparsed)
	}
	if s.View().Connected() != 1 {
		t.Errorf("%d sockets were needed", s.View().Connected())
	}
}

func TestMissedMessagesAreReadAtConnect(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{Retries: []time.Duration{}}) // an event that nobody takes is lost
	b := start(t, s, nil)
	root := s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "before"})
	s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "before, too"})
	b.until("both", func() bool { return len(b.in.texts()) == 2 })
	b.stop()
	b.until("no socket", func() bool { return s.View().Sockets() == 0 })
	for i := range 250 {
		s.Say(slacktest.Say{Channel: groupID, User: benID, Text: fmt.Sprintf("missed %03d", i)})
	}
	s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "missed, too"})
	fresh := s.Say(slacktest.Say{Channel: groupID, User: benID, Text: "a new thread"})
	s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "missed in it", Thread: fresh})
	s.Say(slacktest.Say{Channel: groupID, User: anaID, Text: "missed in an old one", Thread: root})
	s.AddChannel(slacktest.Channel{ID: "C0UNKNOWN1", Name: "unknown", Kind: slacktest.Public, Members: []string{anaID, s.Team(0).Bot.ID}})
	s.Say(slacktest.Say{Channel: "C0UNKNOWN1", User: anaID, Text: "nobody knows this room"})
	b.run()
	b.until("what was missed", func() bool { return len(b.in.texts()) >= 2+253 })
	got := b.in.texts()
	if !slices.IsSorted(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, "missed 0") })) {
		t.Errorf("out of order: %q", got)
	}
	in, _ := b.in.find(withText("missed in it"))
	if in.To.Thread != channels.ThreadID(fresh) {
		t.Errorf("the reply is %+v", in)
	}
	if contains(got, "nobody knows") {
		t.Error("a room without a session was read")
	}
}

func TestStatesSayWhatToDo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o     slacktest.Options
		do    func(*slacktest.Server)
		after func(*slacktest.Server) // once it is ready; nil: it never will be
		state channels.State
		cause string
		hint  string
		fatal bool
	}{
		"revoked":         {do: func(s *slacktest.Server) { s.Revoke(0, "token_revoked") }, state: channels.Failed, cause: "token_revoked", hint: "install the app again", fatal: true},
		"uninstalled":     {do: func(s *slacktest.Server) { s.Revoke(0, "account_inactive") }, state: channels.Failed, cause: "account_inactive", hint: "removed from the workspace", fatal: true},
		"app token":       {do: func(s *slacktest.Server) { s.RevokeApp("invalid_auth") }, state: channels.Failed, cause: "invalid_auth", hint: "copy it again", fatal: true},
		"no socket scope": {do: func(s *slacktest.Server) { s.RevokeApp("missing_scope") }, state: channels.Failed, cause: "missing_scope", hint: "connections:write", fatal: true},
		"limited": {do: func(s *slacktest.Server) {
			s.AddFault(slacktest.Fault{Method: "apps.connections.open", Do: slacktest.Reply, Status: 429, After: time.Minute})
		}, state: channels.Connecting, cause: "rate limit", hint: "asks to wait"},
		"html": {do: func(s *slacktest.Server) {
			s.AddFault(slacktest.Fault{Method: "auth.test", Do: slacktest.Reply, Status: 502, Body: slacktest.BadGateway})
		}, state: channels.Connecting, cause: "502", hint: ""},
		"scopes":           {o: slacktest.Options{Teams: []slacktest.Team{{Scopes: []string{"chat:write", "im:history", "users:read"}}}}, do: func(*slacktest.Server) {}, state: channels.Ready, cause: "channels:history", hint: "install the app again"},
		"no scopes header": {o: slacktest.Options{Teams: []slacktest.Team{{NoScopesHeader: true}}}, do: func(*slacktest.Server) {}, state: channels.Ready, cause: "", hint: ""},
		"switched off": {do: func(*slacktest.Server) {}, after: func(s *slacktest.Server) {
			s.AddFault(slacktest.Fault{Method: "apps.connections.open", Do: slacktest.Hang})
			s.Disconnect("link_disabled")
		}, state: channels.Needs, cause: "switched off", hint: "switch it on"},
		"crowded":   {do: func(*slacktest.Server) {}, after: func(s *slacktest.Server) { s.Disconnect("too_many_websockets") }, state: channels.Needs, cause: "too many", hint: "stop those"},
		"refreshed": {do: func(*slacktest.Server) {}, after: func(s *slacktest.Server) { s.Disconnect("refresh_requested") }, state: channels.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFake(t, tc.o)
			tc.do(s)
			b := bind(t, s, slack.Factory(), nil).run()
			if tc.after != nil {
				b.until("ready", func() bool { return b.in.told(channels.Ready) != nil && s.View().Sockets() == 1 })
				tc.after(s)
				b.until("the end of the first socket", func() bool {
					return s.View().Connected() > 1 || b.in.told(tc.state) != nil && tc.state != channels.Ready
				})
			}
			b.until(string(tc.state), func() bool {
				st := b.in.told(tc.state)
				return st != nil && strings.Contains(st.Cause, tc.cause) && strings.Contains(st.Hint, tc.hint)
			})
			if tc.fatal {
				b.until("the end of Run", func() bool { _, ok := b.in.end(); return ok })
				if err, _ := b.in.end(); channels.ClassOf(err) != channels.Fatal {
					t.Errorf("Run returned %v", err)
				}
			}
		})
	}
}

// TestSlowTakingIsNoEnd: a gateway that is slower than Slack's three seconds gets the event again, under one key.
func TestSlowTakingIsNoEnd(t *testing.T) {
	t.Parallel()
	s := newFake(t, slacktest.Options{AckWithin: 50 * time.Millisecond, Retries: slices.Repeat([]time.Duration{10 * time.Millisecond}, 100)})
	b := start(t, s, nil)
	offers := make(chan struct{}, 100)
	b.in.refuse = func([]channels.Inbound) error {
		offers <- struct{}{}
		if len(offers) < 3 {
			<-time.After(80 * time.Millisecond)
		}
		return nil
	}
	s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "slowly"})
	b.until("an acknowledgement in time", func() bool { return s.View().Pending() == 0 })
	b.in.mu.Lock()
	defer b.in.mu.Unlock()
	if len(b.in.keys) != 1 || len(b.in.all) < 2 {
		t.Errorf("%d offers under %d keys", len(b.in.all), len(b.in.keys))
	}
}

// TestR14_ReconnectsLeaveNothing compresses a day of reconnects: Slack asks for a new connection about every hour, and lines
// break beside.
func TestR14_ReconnectsLeaveNothing(t *testing.T) {
	s := newFake(t, slacktest.Options{Retries: slices.Repeat([]time.Duration{20 * time.Millisecond}, 100)})
	b := start(t, s, nil)
	measure := func() (goroutines, files int, heap uint64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fds, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(fds), m.HeapInuse
	}
	cycle := func(n int) {
		for i := range n {
			was := s.View().Connected()
			switch i % 3 {
			case 0:
				s.Disconnect("refresh_requested")
			case 1:
				s.CutSockets()
			case 2:
				s.Disturb(slacktest.Faults{DropNext: 1})
				s.Say(slacktest.Say{Channel: anaDM, User: anaID, Text: "cut in the middle"})
			}
			b.until("another socket", func() bool { return s.View().Connected() > was && s.View().Sockets() == 1 })
		}
		b.until("rest", func() bool { return s.View().Pending() == 0 })
	}
	cycle(15)
	goroutines, files, heap := measure()
	cycles := 30
	if os.Getenv("PARLEY_KILLS") != "" {
		cycles = 1000
	}
	cycle(cycles)
	var g, f int
	var h uint64
	b.until("no more goroutines and files than before", func() bool {
		g, f, h = measure()
		return g <= goroutines+3 && f <= files+3
	})
	t.Logf("%d reconnects: goroutines %d to %d, files %d to %d, heap %d to %d KiB", cycles, goroutines, g, files, f, heap>>10, h>>10)
	if h > heap+8<<20 {
		t.Errorf("the heap grew from %d to %d KiB", heap>>10, h>>10)
	}
}
