package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/channels"
	"parley/routes"
	"parley/workspace"
)

var known = routes.Options{
	Default: "main",
	Agents: []routes.Agent{{ID: "main", Channels: []string{"*"}}, {ID: "research", Channels: []string{"*"}},
		{ID: "ops", Channels: []string{"dc", "slack"}}, {ID: "tg-only", Channels: []string{"tg"}}},
	Channels: map[string]channels.Network{"tg": "telegram", "tg2": "telegram", "slack": "slack", "dc": "discord", "wa": "whatsapp"},
}

func table(t testing.TB, rules ...routes.Rule) *routes.Table {
	t.Helper()
	tb, err := routes.NewTable(rules, known)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// discordThread is a message in a thread of a Discord channel: it has every fact that a rule can ask for.
func discordThread() routes.Facts {
	return routes.Facts{Channel: "dc", In: channels.Inbound{Kind: channels.KindMessage, Server: "guild", Team: "team",
		From: channels.Sender{User: "u1", Roles: []string{"dev", "mod"}},
		To:   channels.Address{Network: "discord", Account: "bot", Kind: channels.Room, Peer: "chan", Thread: "thr"}}}
}

// The tiers of precedence, from the widest to the narrowest: each added rule wins over all before it.
var tiers = []struct {
	rule  routes.Rule
	label string
}{
	{routes.Rule{Kind: "room"}, "kind:room"},
	{routes.Rule{Type: "discord"}, "network:discord"},
	{routes.Rule{Type: "discord", Kind: "room"}, "network:discord/room"},
	{routes.Rule{Channel: "dc"}, "channel:dc"},
	{routes.Rule{Team: "team"}, "team:team"},
	{routes.Rule{Server: "guild"}, "server:guild"},
	{routes.Rule{Server: "guild", Channel: "dc"}, "server:dc/guild"},
	{routes.Rule{Server: "guild", Roles: []string{"mod", "boss"}}, "server+roles:guild/boss|mod"},
	{routes.Rule{Peer: "chan"}, "parent:chan"},
	{routes.Rule{Peer: "chan", Channel: "dc"}, "parent:dc/chan"},
	{routes.Rule{Thread: "thr"}, "thread:thr"},
	{routes.Rule{Thread: "thr", Peer: "chan", Channel: "dc"}, "thread:dc/chan/thr"},
}

func TestNarrowestRuleWins(t *testing.T) {
	t.Parallel()
	if got := table(t).Resolve(discordThread()); !got.Fallback || got.Rule != "fallback" || got.Agent != "main" {
		t.Errorf("without rules: %+v", got.Binding)
	}
	var rules []routes.Rule
	for i, tier := range tiers {
		r := tier.rule
		r.Agent, r.Session = "research", fmt.Sprint("s", i)
		rules = append(rules, r)
		for name, order := range map[string][]routes.Rule{"written last": rules, "written first": reversed(rules)} {
			got := table(t, order...).Resolve(discordThread())
			if got.Rule != tier.label || got.Session.Name != r.Session || got.Agent != "research" || got.Fallback {
				t.Errorf("%s %s: got %+v, session %q", tier.label, name, got.Binding, got.Session.Name)
			}
		}
	}
}

func reversed(rules []routes.Rule) []routes.Rule {
	r := slices.Clone(rules)
	slices.Reverse(r)
	return r
}

func TestAllGivenFieldsMustMatch(t *testing.T) {
	t.Parallel()
	full := routes.Rule{Type: "discord", Channel: "dc", Server: "guild", Roles: []string{"mod"}, Team: "team", Kind: "room", Peer: "chan", Thread: "thr", Agent: "research"}
	tb := table(t, full)
	if got := tb.Resolve(discordThread()); got.Agent != "research" {
		t.Fatalf("all fields match: %+v", got.Binding)
	}
	for field, change := range map[string]func(*routes.Facts){
		"channel": func(f *routes.Facts) { f.Channel = "tg" },
		"server":  func(f *routes.Facts) { f.In.Server = "" },
		"roles":   func(f *routes.Facts) { f.In.From.Roles = []string{"dev"} },
		"team":    func(f *routes.Facts) { f.In.Team = "other" },
		"kind":    func(f *routes.Facts) { f.In.To.Kind = channels.Group },
		"peer":    func(f *routes.Facts) { f.In.To.Peer = "u1" },
		"thread":  func(f *routes.Facts) { f.In.To.Thread = "" },
	} {
		f := discordThread()
		change(&f)
		got, considered := tb.Explain(f)
		if !got.Fallback || considered[0].Matched || considered[0].Why != field {
			t.Errorf("with another %s: %+v, %+v", field, got.Binding, considered)
		}
	}
	byType := table(t, routes.Rule{Type: "discord", Agent: "research"})
	f := discordThread()
	f.In.To.Network = "slack"
	if got, considered := byType.Explain(f); !got.Fallback || considered[0].Why != "type" {
		t.Errorf("with another type: %+v, %+v", got.Binding, considered)
	}
}

func TestOrderOfWritingBreaksTies(t *testing.T) {
	t.Parallel()
	dev := routes.Rule{Server: "guild", Roles: []string{"dev"}, Agent: "research"}
	mod := routes.Rule{Server: "guild", Roles: []string{"mod"}, Agent: "ops"}
	if got := table(t, dev, mod).Resolve(discordThread()); got.Agent != "research" {
		t.Errorf("dev first: %+v", got.Binding)
	}
	if got := table(t, mod, dev).Resolve(discordThread()); got.Agent != "ops" {
		t.Errorf("mod first: %+v", got.Binding)
	}
}

func TestPeerOfADMIsItsUserToo(t *testing.T) {
	t.Parallel()
	tb := table(t, routes.Rule{Channel: "slack", Peer: "U7", Agent: "research"})
	f := routes.Facts{Channel: "slack", In: channels.Inbound{From: channels.Sender{User: "U7"},
		To: channels.Address{Network: "slack", Kind: channels.DM, Peer: "D42"}}}
	if got := tb.Resolve(f); got.Rule != "peer:slack/U7" {
		t.Errorf("DM of the user: %+v", got.Binding)
	}
	f.In.From = channels.Sender{User: "lid", Alt: []channels.UserID{"U7"}}
	if got := tb.Resolve(f); got.Rule != "peer:slack/U7" {
		t.Errorf("DM of the user under another id: %+v", got.Binding)
	}
	f.In.To.Kind = channels.Room
	if got := tb.Resolve(f); !got.Fallback {
		t.Errorf("the same user in a room: %+v", got.Binding)
	}
}

func TestEveryProblemIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	o := known
	o.Default, o.DMScope = "ghost", "per-cat"
	_, err := routes.NewTable([]routes.Rule{
		{Channel: "nope", Agent: "main"},
		{Channel: "tg", Type: "slack", Agent: "main"},
		{Roles: []string{"mod", ""}, Agent: "main"},
		{Kind: "party", Agent: "main"},
		{Agent: "main"},
		{Peer: "1", Agent: "nobody"},
		{Peer: "2"},
		{Channel: "tg", Peer: "3", Agent: "ops"},
		{Peer: "4", Agent: "main", Fanout: []workspace.AgentID{"main", "ops", "research", "tg-only"}},
		{Peer: "5", Agent: "main"},
		{Peer: "5", Agent: "research"},
		{Channel: "tg", Server: "g", Roles: []string{"b", "a"}, Agent: "main"},
		{Type: "telegram", Channel: "tg", Server: "g", Roles: []string{"a", "b"}, Agent: "main"},
	}, o)
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		`routes[0]: channel "nope" is not configured`,
		`routes[1]: channel "tg" is of type "telegram", not "slack"`,
		`routes[2]: roles need a server`,
		`routes[2]: a role is empty`,
		`routes[3]: kind "party" is none of dm, group, room`,
		`routes[4]: it matches everything: make its agent the default instead`,
		`routes[5]: agent "nobody" is not configured`,
		`routes[6]: agent "" is not configured`,
		`routes[7]: agent "ops" may not be routed to channel "tg"`,
		`routes[8]: fanout names 4 agents; at most 3`,
		`routes[8]: agent "main" is named twice`,
		`routes[10]: matches the same as routes[9]`,
		`routes[12]: matches the same as routes[11]`,
		`dm_scope "per-cat" is not known`,
		`default agent "ghost" is not configured`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", err, strings.Join(want, "\n"))
	}
}

func TestSomebodyAnswersOnEveryChannel(t *testing.T) {
	t.Parallel()
	o := known
	o.Default, o.Channels = "tg-only", map[string]channels.Network{"tg": "telegram", "slack": "slack"}
	if _, err := routes.NewTable(nil, o); err == nil || !strings.Contains(err.Error(), `channel "slack"`) {
		t.Errorf("a channel that nobody may answer on: %v", err)
	}
	if _, err := routes.NewTable([]routes.Rule{{Channel: "slack", Kind: "dm", Agent: "ops"}}, o); err == nil {
		t.Error("a rule for its DMs alone was taken for all of it")
	}
	tb, err := routes.NewTable([]routes.Rule{{Channel: "slack", Agent: "ops"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := tb.Resolve(routes.Facts{Channel: "slack"}); got.Agent != "ops" {
		t.Errorf("%+v", got.Binding)
	}
}

func TestAgentThatMayNotComeIsPassedOver(t *testing.T) {
	t.Parallel()
	tb := table(t, routes.Rule{Type: "telegram", Agent: "tg-only"}, routes.Rule{Peer: "7", Agent: "ops", Fanout: []workspace.AgentID{"tg-only"}})
	f := said()
	if got := tb.Resolve(f); got.Agent != "tg-only" {
		t.Errorf("ops may not go to tg: %+v", got.Binding)
	}
	f.Channel = "tg2"
	if got, considered := tb.Explain(f); got.Agent != "main" || considered[1].Why != "agent may not be routed to this channel" {
		t.Errorf("tg-only may not go to tg2: %+v, %+v", got.Binding, considered)
	}
	f.Channel = "slack"
	if got := tb.Resolve(f); got.Agent != "ops" || len(got.Fanout) != 0 {
		t.Errorf("the copy may not go to slack: %+v", got)
	}
}

func TestCalledAgentAnswersInARoom(t *testing.T) {
	t.Parallel()
	tb := table(t, routes.Rule{Channel: "dc", Agent: "main", Session: "lobby", Fanout: []workspace.AgentID{"ops"}})
	for text, want := range map[string]workspace.AgentID{
		"@research what is new": "research", "  @Research, look": "research", "@research": "research", "@RESEARCH: go": "research", "@research\nnews": "research",
		"@main hello": "main", "hello @research": "main", "@researcher hello": "main", "@": "main", "@ research": "main", "@tg-only hello": "main", "@nobody": "main", "research": "main", "": "main",
	} {
		f := discordThread()
		f.In.Text = text
		got := tb.Resolve(f)
		if got.Agent != want || got.Session.Agent != want {
			t.Errorf("%q goes to %+v", text, got.Binding)
		}
		if called := want != "main"; called != (got.Rule == "called:@research") || called != (got.Session.Name == "") || called != (len(got.Fanout) == 0) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	f := said(func(f *routes.Facts) { f.In.Text = "@research hello" })
	if got := tb.Resolve(f); got.Agent != "main" {
		t.Errorf("in a DM: %+v", got.Binding)
	}
	if _, ok := tb.Called(f); ok {
		t.Error("called in a DM")
	}
}

func TestChatsSwitchOutranksTheRules(t *testing.T) {
	t.Parallel()
	tb := table(t, routes.Rule{Channel: "tg", Agent: "research", Session: "watch", Fanout: []workspace.AgentID{"main"}})
	f := said(func(f *routes.Facts) { f.Agent = "tg-only" })
	if got := tb.Resolve(f); got.Agent != "tg-only" || got.Rule != "switch:tg-only" || got.Session.Name != "" || len(got.Fanout) != 0 {
		t.Errorf("switched: %+v", got)
	}
	f.Session = "notes"
	if got := tb.Resolve(f); got.Session.Name != "notes" || got.Session.Agent != "tg-only" {
		t.Errorf("switched with a session: %+v", got)
	}
	for _, gone := range []workspace.AgentID{"ops", "ghost", "research", ""} {
		f.Agent, f.Session = gone, ""
		if got := tb.Resolve(f); got.Agent != "research" || got.Rule != "channel:tg" || got.Session.Name != "watch" {
			t.Errorf("switched to %q: %+v", gone, got)
		}
	}
	f = said(inRoom, func(f *routes.Facts) { f.Agent, f.Session, f.In.Text = "tg-only", "notes", "@main hi" })
	if got := tb.Resolve(f); got.Agent != "main" || got.Session.Name != "" {
		t.Errorf("called after a switch: %+v", got)
	}
}

func TestFanoutGivesEachAgentItsOwnSession(t *testing.T) {
	t.Parallel()
	tb := table(t, routes.Rule{Channel: "dc", Agent: "main", Session: "x", Fanout: []workspace.AgentID{"ops", "research"}})
	got := tb.Resolve(discordThread())
	if len(got.Fanout) != 2 {
		t.Fatalf("%+v", got)
	}
	keys := map[string]bool{got.Key: true}
	for i, want := range []workspace.AgentID{"ops", "research"} {
		c := got.Fanout[i]
		if c.Agent != want || c.Session.Agent != want || c.Rule != "fanout:channel:dc" || c.Key != c.Session.String() {
			t.Errorf("copy %d: %+v", i, c)
		}
		keys[c.Key] = true
	}
	if len(keys) != 3 {
		t.Errorf("sessions: %v", keys)
	}
}

func TestSessionKeyFollowsScope(t *testing.T) {
	t.Parallel()
	dm := said(person(workspace.Guest))
	stranger := said()
	room := said(inRoom, person(workspace.Owner))
	topic := said(inRoom, func(f *routes.Facts) { f.In.To.Thread = "5" })
	dmThread := said(person(workspace.Guest), func(f *routes.Facts) { f.In.To.Thread = "1.2" })
	lone := said(person(workspace.Owner), func(f *routes.Facts) { f.Alone = true })
	guest := said(person(workspace.Guest), func(f *routes.Facts) { f.Alone = true })
	web := routes.Facts{Channel: "webchat", Local: true, Person: workspace.Person{ID: "ana", Role: workspace.Owner}, In: channels.Inbound{
		To: channels.Address{Network: "webchat", Account: "ana", Kind: channels.DM, Peer: "first"}}}
	for _, c := range []struct {
		name  string
		scope routes.DMScope
		facts routes.Facts
		want  string
	}{
		{"a DM by default", "", dm, "agent:main:telegram:bot1:dm:7"},
		{"a DM per account", routes.PerAccountChannelPeer, dm, "agent:main:telegram:bot1:dm:7"},
		{"a DM per network", routes.PerChannelPeer, dm, "agent:main:telegram:dm:7"},
		{"a DM per person", routes.PerPeer, dm, "agent:main:person:p1"},
		{"a DM of nobody known, per person", routes.PerPeer, stranger, "agent:main:telegram:bot1:dm:7"},
		{"a DM of the lone owner", routes.MainScope, lone, "agent:main:main"},
		{"a DM of the owner among others", routes.MainScope, said(person(workspace.Owner)), "agent:main:telegram:bot1:dm:7"},
		{"a DM of a guest, alone", routes.MainScope, guest, "agent:main:telegram:bot1:dm:7"},
		{"a DM thread", "", dmThread, "agent:main:telegram:bot1:dm:7:thread:1.2"},
		{"a DM thread per network", routes.PerChannelPeer, dmThread, "agent:main:telegram:dm:7:thread:1.2"},
		{"a group", "", room, "agent:main:telegram:bot1:group:-100"},
		{"a group per network", routes.PerChannelPeer, room, "agent:main:telegram:bot1:group:-100"},
		{"a group per person", routes.PerPeer, room, "agent:main:telegram:bot1:group:-100"},
		{"a group of the lone owner", routes.MainScope, said(inRoom, person(workspace.Owner), func(f *routes.Facts) { f.Alone = true }), "agent:main:telegram:bot1:group:-100"},
		{"a topic", "", topic, "agent:main:telegram:bot1:group:-100:thread:5"},
		{"a topic with a named session", "", said(inRoom, func(f *routes.Facts) { f.In.To.Thread, f.Session = "5", "a:b" }), "agent:main:telegram:bot1:group:-100:thread:5:name:a%3Ab"},
		{"WebChat", "", web, "agent:main:local:first"},
		{"WebChat per person", routes.PerPeer, web, "agent:main:local:first"},
	} {
		o := known
		o.DMScope = c.scope
		tb, err := routes.NewTable(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		got := tb.Resolve(c.facts)
		if got.Key != c.want || got.Session.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Key, c.want)
		}
		if k, err := workspace.ParseKey(got.Key); err != nil || k != got.Session {
			t.Errorf("%s: %s reads back as %+v, %v", c.name, got.Key, k, err)
		}
	}
}

// Two people never share a DM session by default, whatever their ids look like.
func TestT16_StrangersNeverShareASession(t *testing.T) {
	t.Parallel()
	tb := table(t)
	part := rapid.StringOfN(rapid.SampledFrom([]rune("ab:/%3A25")), 0, 6, -1)
	address := func(t *rapid.T, who string) channels.Address {
		return channels.Address{Network: "telegram", Account: channels.AccountID(part.Draw(t, who+" account")), Peer: channels.PeerID(part.Draw(t, who+" peer")),
			Thread: channels.ThreadID(part.Draw(t, who+" thread")), Kind: rapid.SampledFrom([]channels.PeerKind{"dm", "group", "room"}).Draw(t, who+" kind")}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := address(t, "one"), address(t, "other")
		ka := tb.Resolve(routes.Facts{In: channels.Inbound{To: a}}).Key
		kb := tb.Resolve(routes.Facts{In: channels.Inbound{To: b}}).Key
		if (a == b) != (ka == kb) {
			t.Errorf("%+v and %+v have keys %s and %s", a, b, ka, kb)
		}
	})
}

// drawRules are rules over few values, so that many match; equal ones are left out.
func drawRules(t *rapid.T) []routes.Rule {
	pick := func(label string, values ...string) string {
		return rapid.SampledFrom(append(values, "", "", "")).Draw(t, label)
	}
	var rules []routes.Rule
	for range rapid.IntRange(0, 12).Draw(t, "rules") {
		r := routes.Rule{Type: channels.Network(pick("type", "discord", "slack")), Channel: pick("channel", "dc", "slack"),
			Server: pick("server", "guild", "g2"), Team: pick("team", "team", "t2"), Kind: channels.PeerKind(pick("kind", "dm", "room")),
			Peer: channels.PeerID(pick("peer", "chan", "u1", "u2")), Thread: channels.ThreadID(pick("thread", "thr", "t2")),
			Agent: rapid.SampledFrom([]workspace.AgentID{"main", "research"}).Draw(t, "agent")}
		if role := pick("role", "mod", "boss"); role != "" && r.Server != "" {
			r.Roles = []string{role}
		}
		if _, err := routes.NewTable(append(rules[:len(rules):len(rules)], r), known); err == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// The index finds what reading down the whole explained list finds.
func TestResolveAgreesWithExplain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tb, err := routes.NewTable(drawRules(t), known)
		if err != nil {
			t.Fatal(err)
		}
		f := discordThread()
		f.In.To.Kind = rapid.SampledFrom([]channels.PeerKind{"dm", "room"}).Draw(t, "of kind")
		f.In.To.Thread = rapid.SampledFrom([]channels.ThreadID{"", "thr", "t2"}).Draw(t, "in thread")
		f.In.To.Peer = rapid.SampledFrom([]channels.PeerID{"chan", "u1", "D1"}).Draw(t, "with")
		f.In.From.Alt = rapid.SampledFrom([][]channels.UserID{nil, {"u2"}, {"chan"}}).Draw(t, "alt")
		f.In.Server = rapid.SampledFrom([]string{"", "guild", "g2"}).Draw(t, "on server")
		f.In.Team = rapid.SampledFrom([]string{"", "team", "t2"}).Draw(t, "of team")
		got, considered := tb.Explain(f)
		want := "fallback"
		if i := slices.IndexFunc(considered, func(c routes.Considered) bool { return c.Matched }); i >= 0 {
			want = considered[i].Rule
		}
		if got.Rule != want {
			t.Errorf("resolved by %s; first match is %s of %+v", got.Rule, want, considered)
		}
		for _, c := range considered {
			if c.Matched == (c.Why != "") || c.N < 1 {
				t.Errorf("%+v", c)
			}
		}
	})
}

func FuzzResolve(f *testing.F) {
	f.Add("tg", "telegram", "bot", "dm", "7", "", "7", "@research hi", "", "", "per-peer")
	f.Add("dc", "discord", "bot", "room", "chan", "thr", "u1", "hello", "ops", "notes", "")
	f.Fuzz(func(t *testing.T, channel, network, account, kind, peer, thread, user, text, agent, session, scope string) {
		o := known
		o.DMScope = routes.DMScope(scope)
		tb, err := routes.NewTable([]routes.Rule{{Peer: "chan", Agent: "research", Session: "watch"}, {Type: "telegram", Agent: "tg-only"}}, o)
		if err != nil {
			return
		}
		facts := routes.Facts{Channel: channel, Person: workspace.Person{ID: workspace.PersonID(user), Role: workspace.Guest},
			Agent: workspace.AgentID(agent), Session: session, In: channels.Inbound{Text: text, From: channels.Sender{User: channels.UserID(user)},
				To: channels.Address{Network: channels.Network(network), Account: channels.AccountID(account), Kind: channels.PeerKind(kind),
					Peer: channels.PeerID(peer), Thread: channels.ThreadID(thread)}}}
		got := tb.Resolve(facts)
		if !slices.ContainsFunc(known.Agents, func(a routes.Agent) bool { return a.ID == got.Agent }) {
			t.Errorf("nobody answers: %+v", got)
		}
		if got.Rule == "" || got.Fallback != (got.Rule == "fallback") || got.Session.Agent != got.Agent || got.Key != got.Session.String() {
			t.Errorf("%+v", got)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	var rules []routes.Rule
	for i := range 500 {
		rules = append(rules, routes.Rule{Channel: "tg", Peer: channels.PeerID(fmt.Sprint(1000 + i)), Agent: "research"})
	}
	rules = append(rules, routes.Rule{Type: "telegram", Agent: "research"})
	tb := table(b, rules...)
	for name, peer := range map[string]channels.PeerID{"peer": "1250", "network": "7"} {
		f := said(func(f *routes.Facts) { f.In.To.Peer = peer })
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tb.Resolve(f)
			}
		})
	}
}

func BenchmarkGate(b *testing.B) {
	f := said(person(workspace.Guest))
	b.ReportAllocs()
	for b.Loop() {
		routes.Gate(routes.Access{}, f)
	}
}

// A message is resolved on its way to the journal: that must not be felt.
func TestResolveAllocatesLittle(t *testing.T) {
	tb := table(t, routes.Rule{Channel: "tg", Peer: "7", Agent: "research"})
	f := said()
	if n := testing.AllocsPerRun(100, func() { tb.Resolve(f) }); n > 3 {
		t.Errorf("Resolve allocates %v times", n)
	}
}
