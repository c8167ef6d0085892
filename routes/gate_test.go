package routes_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/channels"
	"parley/routes"
	"parley/workspace"
)

// said is a message of user 7 in a DM; the edits make it another event.
func said(edits ...func(*routes.Facts)) routes.Facts {
	f := routes.Facts{Channel: "tg", In: channels.Inbound{
		Key: "m:7:1", Kind: channels.KindMessage, ID: "1", Text: "hello",
		From: channels.Sender{User: "7", Name: "Ana"},
		To:   channels.Address{Network: "telegram", Account: "bot1", Kind: channels.DM, Peer: "7"},
	}}
	for _, e := range edits {
		e(&f)
	}
	return f
}

func inRoom(f *routes.Facts) { f.In.To.Kind, f.In.To.Peer = channels.Group, "-100" }
func mentioned(f *routes.Facts) {
	f.In.Mentioned = true
}
func kind(k channels.Kind) func(*routes.Facts) { return func(f *routes.Facts) { f.In.Kind = k } }
func person(r workspace.Role) func(*routes.Facts) {
	return func(f *routes.Facts) { f.Person = workspace.Person{ID: "p1", Role: r, Vouched: true} }
}

// passing is a guest with a record whom nobody approved.
func passing(f *routes.Facts) { f.Person = workspace.Person{ID: "p1", Role: workspace.Guest} }

var roomAllowed = routes.Access{Groups: routes.Allowlist, Allow: []string{"-100"}, RequireMention: true}

func TestGateDecidesEachCase(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		access routes.Access
		facts  routes.Facts
		want   routes.Outcome
		role   workspace.Role
		rule   string
	}{
		{"a stranger's DM gets a code by default", routes.Access{}, said(), routes.Pair, "", "dm:pairing"},
		{"pairing spelled out", routes.Access{DM: "pairing"}, said(), routes.Pair, "", "dm:pairing"},
		{"a paired guest passes", routes.Access{}, said(person(workspace.Guest)), routes.Admit, workspace.Guest, "dm:known"},
		{"an owner keeps the role", routes.Access{}, said(person(workspace.Owner)), routes.Admit, workspace.Owner, "dm:known"},
		{"known people pass the allow-list", routes.Access{DM: "allowlist"}, said(person(workspace.Member)), routes.Admit, workspace.Member, "dm:known"},
		{"a listed id speaks as guest", routes.Access{DM: "allowlist", Allow: []string{"7"}}, said(), routes.Admit, workspace.Guest, "dm:allow"},
		{"a listed id needs no code", routes.Access{DM: "pairing", Allow: []string{"7"}}, said(), routes.Admit, workspace.Guest, "dm:allow"},
		{"one of the sender's other ids is listed", routes.Access{DM: "allowlist", Allow: []string{"49@s"}},
			said(func(f *routes.Facts) { f.In.From.Alt = []channels.UserID{"", "49@s"} }), routes.Admit, workspace.Guest, "dm:allow"},
		{"a DM's room id is not its sender's id", routes.Access{DM: "allowlist", Allow: []string{"D9"}},
			said(func(f *routes.Facts) { f.In.To.Peer = "D9" }), routes.Refuse, "", "dm:allowlist"},
		{"an unlisted id", routes.Access{DM: "allowlist", Allow: []string{"8"}}, said(), routes.Refuse, "", "dm:allowlist"},
		{"a guest of an allowed group is a stranger in a DM", routes.Access{}, said(passing), routes.Pair, "", "dm:pairing"},
		{"nor is he on the allow-list", routes.Access{DM: "allowlist"}, said(passing), routes.Refuse, "", "dm:allowlist"},
		{"he may come by an open door again", routes.Access{DM: "open"}, said(passing), routes.Admit, workspace.Guest, "dm:open"},
		{"and speak in the group", roomAllowed, said(inRoom, mentioned, passing), routes.Admit, workspace.Guest, "group:allow"},
		{"open lets strangers in as guests", routes.Access{DM: "open"}, said(), routes.Admit, workspace.Guest, "dm:open"},
		{"open keeps a known role", routes.Access{DM: "open"}, said(person(workspace.Owner)), routes.Admit, workspace.Owner, "dm:known"},
		{"disabled is for owners too", routes.Access{DM: "disabled"}, said(person(workspace.Owner)), routes.Refuse, "", "dm:disabled"},
		{"a policy nobody knows is shut", routes.Access{DM: "opne", Allow: []string{"7"}}, said(person(workspace.Owner)), routes.Refuse, "", "dm:policy"},
		{"a person without a role", routes.Access{DM: "open"}, said(person("")), routes.Refuse, "", "person"},
		{"a role nobody knows", routes.Access{DM: "open"}, said(person("admin")), routes.Refuse, "", "person"},

		{"groups are shut by default", routes.Access{}, said(inRoom, mentioned), routes.Refuse, "", "group:allowlist"},
		{"an allowed room", roomAllowed, said(inRoom, mentioned), routes.Admit, workspace.Guest, "group:allow"},
		{"an allowed room of the other kind", roomAllowed, said(inRoom, mentioned, func(f *routes.Facts) { f.In.To.Kind = channels.Room }), routes.Admit, workspace.Guest, "group:allow"},
		{"its threads too", roomAllowed, said(inRoom, mentioned, func(f *routes.Facts) { f.In.To.Thread = "5" }), routes.Admit, workspace.Guest, "group:allow"},
		{"not addressed", roomAllowed, said(inRoom), routes.Context, "", "mention"},
		{"an owner must mention too", roomAllowed, said(inRoom, person(workspace.Owner)), routes.Context, "", "mention"},
		{"an answer to our message", roomAllowed, said(inRoom, func(f *routes.Facts) { f.Addressed = true }), routes.Admit, workspace.Guest, "group:allow"},
		{"a quote of ours", roomAllowed, said(inRoom, func(f *routes.Facts) { f.In.Quote = &channels.Quote{Own: true} }), routes.Admit, workspace.Guest, "group:allow"},
		{"a quote of another", roomAllowed, said(inRoom, func(f *routes.Facts) { f.In.Quote = &channels.Quote{} }), routes.Context, "", "mention"},
		{"a command to us", roomAllowed, said(inRoom, func(f *routes.Facts) { f.In.Command = true }), routes.Admit, workspace.Guest, "group:allow"},
		{"a button of ours", roomAllowed, said(inRoom, kind(channels.KindButton)), routes.Admit, workspace.Guest, "group:allow"},
		{"a reaction to ours", roomAllowed, said(inRoom, kind(channels.KindReaction), func(f *routes.Facts) { f.Addressed = true }), routes.Admit, workspace.Guest, "group:allow"},
		{"a reaction to another's", roomAllowed, said(inRoom, kind(channels.KindReaction)), routes.Ignore, "", "mention"},
		{"an edit without a mention", roomAllowed, said(inRoom, kind(channels.KindEdit)), routes.Context, "", "mention"},
		{"an edit that adds the mention", roomAllowed, said(inRoom, kind(channels.KindEdit), mentioned), routes.Admit, workspace.Guest, "group:allow"},
		{"activation always", roomAllowed, said(inRoom, func(f *routes.Facts) { f.Activation = "always" }), routes.Admit, workspace.Guest, "group:allow"},
		{"activation mention", routes.Access{Groups: "open"}, said(inRoom, func(f *routes.Facts) { f.Activation = "mention" }), routes.Context, "", "mention"},
		{"no mention required", routes.Access{Groups: "open"}, said(inRoom), routes.Admit, workspace.Guest, "group:open"},
		{"open groups", routes.Access{Groups: "open", RequireMention: true}, said(inRoom, mentioned), routes.Admit, workspace.Guest, "group:open"},
		{"groups off", routes.Access{Groups: "disabled", Allow: []string{"-100"}}, said(inRoom, mentioned, person(workspace.Owner)), routes.Refuse, "", "group:disabled"},
		{"a groups policy nobody knows", routes.Access{Groups: "pairing", Allow: []string{"-100"}}, said(inRoom, mentioned), routes.Refuse, "", "group:policy"},

		{"ourselves", routes.Access{DM: "open"}, said(func(f *routes.Facts) { f.In.From.User = "bot1" }), routes.Ignore, "", "own"},
		{"ourselves by another id", routes.Access{DM: "open"}, said(func(f *routes.Facts) { f.In.From.Alt = []channels.UserID{"bot1"} }), routes.Ignore, "", "own"},
		{"another bot", routes.Access{DM: "open"}, said(func(f *routes.Facts) { f.In.From.Bot = true }), routes.Ignore, "", "bot"},
		{"another bot in an allowed room", roomAllowed, said(inRoom, mentioned, func(f *routes.Facts) { f.In.From.Bot = true }), routes.Ignore, "", "bot"},
		{"a listed bot", routes.Access{DM: "allowlist", Allow: []string{"7"}}, said(func(f *routes.Facts) { f.In.From.Bot = true }), routes.Admit, workspace.Guest, "dm:allow"},
		{"a listed bot in a room that is not", routes.Access{Allow: []string{"7"}}, said(inRoom, mentioned, func(f *routes.Facts) { f.In.From.Bot = true }), routes.Refuse, "", "group:allowlist"},
		{"nobody wrote it", routes.Access{DM: "open", Allow: []string{""}}, said(func(f *routes.Facts) { f.In.From.User = "" }), routes.Refuse, "", "sender"},
		{"an empty id in both lists", routes.Access{DM: "allowlist", Allow: []string{""}}, said(func(f *routes.Facts) { f.In.From.Alt = []channels.UserID{""} }), routes.Refuse, "", "dm:allowlist"},
		{"nobody, to an account not known yet", routes.Access{DM: "open"}, said(func(f *routes.Facts) { f.In.From.User, f.In.To.Account = "", "" }), routes.Refuse, "", "sender"},
		{"what could not be read is noted", routes.Access{}, said(kind(channels.KindUnparsed)), routes.Note, "", "unparsed"},
		{"a delete names nobody", routes.Access{}, said(kind(channels.KindDelete), func(f *routes.Facts) { f.In.From = channels.Sender{} }), routes.Note, "", "event:delete"},
		{"a delete where DMs are off", routes.Access{DM: "disabled"}, said(kind(channels.KindDelete)), routes.Refuse, "", "dm:disabled"},
		{"a delete in a room that is not allowed", routes.Access{}, said(inRoom, kind(channels.KindDelete)), routes.Refuse, "", "group:allowlist"},
		{"our own delete", routes.Access{}, said(kind(channels.KindDelete), func(f *routes.Facts) { f.In.From.User = "bot1" }), routes.Ignore, "", "own"},
		{"an allowed room moves", roomAllowed, said(inRoom, kind(channels.KindMoved)), routes.Note, "", "event:moved"},
		{"a kind nobody knows", routes.Access{DM: "open"}, said(kind("poll")), routes.Refuse, "", "kind"},
		{"a conversation of no known kind", routes.Access{DM: "open", Groups: "open"}, said(func(f *routes.Facts) { f.In.To.Kind = "" }), routes.Refuse, "", "peer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := routes.Gate(c.access, c.facts)
			if v.Outcome != c.want || v.Role != c.role || v.Decision.Rule != c.rule {
				t.Errorf("got %v, want %s as %q by %s", v, c.want, c.role, c.rule)
			}
			sound(t, v)
		})
	}
}

// sound checks what holds for every verdict.
func sound(t interface{ Errorf(string, ...any) }, v routes.Verdict) {
	if v.Decision.Rule == "" {
		t.Errorf("%+v has no rule", v)
	}
	acts := v.Outcome == routes.Admit || v.Outcome == routes.Note
	if v.Decision.Allow != acts {
		t.Errorf("%+v: allow is %t", v, v.Decision.Allow)
	}
	if acts == (v.Decision.Reason != "") {
		t.Errorf("%+v: a reason belongs to what is not allowed, and only there", v)
	}
	if (v.Outcome == routes.Admit) != v.Role.AtLeast(workspace.Guest) {
		t.Errorf("%+v: a role belongs to the admitted, and only to them", v)
	}
	if v.Outcome == routes.Admit && len(v.Decision.Gates) < 2 {
		t.Errorf("%+v does not say which gates were passed", v)
	}
	if !strings.HasPrefix(v.String(), string(v.Outcome)) || !strings.Contains(v.String(), v.Decision.Rule) {
		t.Errorf("%+v prints as %q", v, v)
	}
}

func TestGateVerdictReadsAsASentence(t *testing.T) {
	t.Parallel()
	got := routes.Gate(roomAllowed, said(inRoom, mentioned, person(workspace.Member))).String()
	if want := "admit as member by group:allow (passed: sender, group:allow, mention:name)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got = routes.Gate(routes.Access{}, said()).String()
	if want := "pair by dm:pairing: the sender is not paired (passed: sender)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// drawFacts makes events out of a few values each, so that they often meet the lists.
func drawFacts(t *rapid.T) (routes.Access, routes.Facts) {
	ids := rapid.SampledFrom([]string{"", "7", "8", "-100", "-200", "bot1", "*", "Ana"})
	id := func(label string) string { return ids.Draw(t, label) }
	a := routes.Access{
		DM:             rapid.SampledFrom([]string{"", "pairing", "allowlist", "open", "disabled", "*"}).Draw(t, "dm"),
		Groups:         rapid.SampledFrom([]string{"", "allowlist", "open", "disabled", "*"}).Draw(t, "groups"),
		Allow:          rapid.SliceOfN(ids, 0, 3).Draw(t, "allow"),
		RequireMention: rapid.Bool().Draw(t, "require"),
	}
	f := routes.Facts{Channel: "tg", In: channels.Inbound{
		Kind: rapid.SampledFrom([]channels.Kind{"message", "edit", "reaction", "button", "delete", "moved", "unparsed", "?"}).Draw(t, "kind"),
		From: channels.Sender{User: channels.UserID(id("user")), Name: id("name"), Bot: rapid.Bool().Draw(t, "bot")},
		To: channels.Address{Network: "telegram", Account: "bot1", Peer: channels.PeerID(id("peer")),
			Kind: rapid.SampledFrom([]channels.PeerKind{"dm", "group", "room", ""}).Draw(t, "peer kind")},
		Title: id("title"), Text: id("text"),
		Mentioned: rapid.Bool().Draw(t, "mentioned"), Command: rapid.Bool().Draw(t, "command"),
	}}
	if alt := id("alt"); alt != "" {
		f.In.From.Alt = []channels.UserID{channels.UserID(alt)}
	}
	if rapid.Bool().Draw(t, "known") {
		f.Person = workspace.Person{ID: "p1", Role: rapid.SampledFrom([]workspace.Role{"owner", "member", "guest", "", "admin"}).Draw(t, "role"), Vouched: rapid.Bool().Draw(t, "vouched")}
	}
	f.Addressed = rapid.Bool().Draw(t, "addressed")
	f.Activation = rapid.SampledFrom([]string{"", "always", "mention"}).Draw(t, "activation")
	return a, f
}

func TestGateVerdictsAreSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, f := drawFacts(t)
		sound(t, routes.Gate(a, f))
	})
}

// Names, titles and texts are labels: whatever they are, the answer stays.
func TestT08_NamesAndTextsDecideNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, f := drawFacts(t)
		before := routes.Gate(a, f)
		f.In.From.Name = rapid.SampledFrom(append(a.Allow, "owner", "p1")).Draw(t, "other name")
		f.In.Title = rapid.SampledFrom(append(a.Allow, "owner")).Draw(t, "other title")
		f.In.Text = rapid.SampledFrom(append(a.Allow, "I am the owner", "/pair")).Draw(t, "other text")
		f.Person.Name = "owner"
		after := routes.Gate(a, f)
		if before.String() != after.String() {
			t.Errorf("%v became %v by labels alone", before, after)
		}
	})
}

// An edit, a reaction or a button is admitted exactly where a message to us would be, with the same rights.
func TestT08_EveryKindPassesTheSameGate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, f := drawFacts(t)
		f.Addressed = true // what differs is only whether an event can carry a mention
		f.In.Kind = channels.KindMessage
		message := routes.Gate(a, f)
		for _, k := range []channels.Kind{channels.KindEdit, channels.KindReaction, channels.KindButton} {
			f.In.Kind = k
			v := routes.Gate(a, f)
			if v.Role != message.Role || v.Decision.Allow != message.Decision.Allow {
				t.Errorf("message: %v\n%s: %v", message, k, v)
			}
		}
	})
}

func TestT08_StrangersGetACodeForMessagesOnly(t *testing.T) {
	t.Parallel()
	for _, k := range []channels.Kind{channels.KindEdit, channels.KindReaction, channels.KindButton} {
		if v := routes.Gate(routes.Access{}, said(kind(k))); v.Outcome != routes.Refuse || v.Decision.Rule != "dm:pairing" {
			t.Errorf("%s: %v", k, v)
		}
	}
}

// Whoever is admitted without being known is a guest; a role comes from the person record and nowhere else.
func TestT08_RoleComesFromThePersonAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, f := drawFacts(t)
		v := routes.Gate(a, f)
		want := f.Person.Role
		if f.Person.ID == "" {
			want = workspace.Guest
		}
		if v.Outcome == routes.Admit && v.Role != want {
			t.Errorf("%v, want role %q", v, want)
		}
	})
}

// Being paired, or listed as a sender, opens no group: only the room's own id or the open policy does.
func TestT09_PairingGrantsNothingInGroups(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, f := drawFacts(t)
		f.In.To.Kind = channels.Group
		v := routes.Gate(a, f)
		listed := f.In.To.Peer != "" && slices.Contains(a.Allow, string(f.In.To.Peer))
		if v.Outcome == routes.Admit && a.Groups != routes.Open && !listed {
			t.Errorf("%v in a room that is not allowed", v)
		}
		if v.Outcome == routes.Pair {
			t.Errorf("%v: a code in a group", v)
		}
	})
	paired := said(inRoom, mentioned, person(workspace.Guest))
	if v := routes.Gate(routes.Access{Allow: []string{"7"}}, paired); v.Outcome != routes.Refuse {
		t.Errorf("paired and listed, in a foreign room: %v", v)
	}
}

// A record alone opens no DM: whoever was let into a group, or came while the door was open, is still to be paired.
func TestT09_ADMNeedsMoreThanARecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, f := drawFacts(t)
		f.In.To.Kind = channels.DM
		passing(&f)
		withRecord := routes.Gate(a, f)
		f.Person = workspace.Person{}
		if stranger := routes.Gate(a, f); withRecord.String() != stranger.String() {
			t.Errorf("a stranger: %v\nwith a record: %v", stranger, withRecord)
		}
	})
}

// In a group each speaks with their own rights: the quoted owner's text lends none.
func TestT10_QuotedTextLendsNoRights(t *testing.T) {
	t.Parallel()
	f := said(inRoom, mentioned, func(f *routes.Facts) {
		f.In.Quote = &channels.Quote{From: channels.Sender{User: "1", Name: "the owner"}, Text: "do it"}
	})
	if v := routes.Gate(roomAllowed, f); v.Role != workspace.Guest {
		t.Errorf("%v", v)
	}
	f.Person = workspace.Person{ID: "p1", Role: workspace.Member}
	if v := routes.Gate(roomAllowed, f); v.Role != workspace.Member {
		t.Errorf("%v", v)
	}
}

func FuzzGate(f *testing.F) {
	f.Add("pairing", "allowlist", "7", "message", "dm", "7", "7", "", "owner", true, false)
	f.Add("open", "open", "-100", "edit", "room", "-100", "8", "bot1", "", false, true)
	f.Fuzz(func(t *testing.T, dm, groups, allow, kind, peerKind, peer, user, alt, role string, bot, flag bool) {
		a := routes.Access{DM: dm, Groups: groups, Allow: strings.Split(allow, ","), RequireMention: flag}
		facts := routes.Facts{Addressed: !flag, In: channels.Inbound{Kind: channels.Kind(kind),
			From: channels.Sender{User: channels.UserID(user), Bot: bot, Alt: []channels.UserID{channels.UserID(alt)}},
			To:   channels.Address{Account: "bot1", Kind: channels.PeerKind(peerKind), Peer: channels.PeerID(peer)}}}
		if role != "" {
			facts.Person = workspace.Person{ID: "p", Role: workspace.Role(role)}
		}
		v := routes.Gate(a, facts)
		sound(t, v)
		if v.Outcome != routes.Admit {
			return
		}
		if user == "" || user == "bot1" || alt == "bot1" {
			t.Errorf("admitted nobody, or ourselves: %v", v)
		}
		if peerKind == "dm" && dm == "disabled" || peerKind != "dm" && groups == "disabled" {
			t.Errorf("admitted past a shut door: %v", v)
		}
	})
}
