package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels"
	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/tools"
)

// busy has the slot's first turn held; the message that it answers is "first".
func busy(r *rig) *hold {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	r.mem.offer(r.t, r.wrote(11, "1", "first"))
	receive(r.t, h.asked, "the first turn")
	return h
}

func editReplacesWhatIsQueued(r *rig) {
	h := busy(r)
	second := r.wrote(11, "2", "sceond")
	r.mem.offer(r.t, second)
	r.mem.offer(r.t, edited(second, "1", "second"))
	close(h.open)
	if got := r.sent(11, 2); !slices.Equal(got, []string{"echo: first", "echo: second"}) {
		r.t.Errorf("answers %q", got)
	}
	want := []string{"message|answered|first", "message|answered|second", "edit|noted|second"}
	if got := r.rows(`SELECT kind, state, text FROM inputs ORDER BY seq`); !slices.Equal(got, want) {
		r.t.Errorf("inputs %q", got)
	}
}

func deletionCancelsWhatIsQueued(r *rig) {
	h := busy(r)
	second := r.wrote(11, "2", "second")
	r.mem.offer(r.t, second)
	r.mem.offer(r.t, deleted(second))
	r.mem.offer(r.t, r.wrote(11, "3", "third"))
	close(h.open)
	if got := r.sent(11, 2); !slices.Equal(got, []string{"echo: first", "echo: third"}) {
		r.t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT state FROM inputs ORDER BY seq`); !slices.Equal(got, []string{"answered", "cancelled", "noted", "answered"}) {
		r.t.Errorf("inputs %q", got)
	}
}

func editedToApples(in channels.Inbound) channels.Inbound { return edited(in, "1", "apples instead") }

// What a turn has taken is told to it at the next boundary, whatever the queue mode is for new messages.
func changeIsSteeredIn(change func(channels.Inbound) channels.Inbound, says string) func(*rig) {
	return func(r *rig) {
		r.answers(throughGate)
		first := r.wrote(11, "1", "work on pears")
		r.mem.offer(r.t, first)
		receive(r.t, r.slot.gate.called, "the tool call")
		r.mem.offer(r.t, change(first))
		close(r.slot.gate.open)
		r.sent(11, 1)
		bodies := r.bodies()
		if len(bodies) != 2 || !strings.Contains(bodies[1], says) {
			r.t.Errorf("%d model calls; the second must hold %q", len(bodies), says)
		}
		r.mem.offer(r.t, r.wrote(11, "2", "next"))
		r.sent(11, 2)
		if got := r.rows(`SELECT state FROM inputs ORDER BY seq`); !slices.Equal(got, []string{"answered", "answered", "answered"}) {
			r.t.Errorf("inputs %q", got)
		}
	}
}

func changeOfWhatWasAnsweredIsNoted(r *rig) {
	first := r.wrote(11, "1", "first")
	r.mem.offer(r.t, first)
	r.sent(11, 1)
	r.mem.offer(r.t, edited(first, "1", "another"))
	r.mem.offer(r.t, deleted(first))
	r.mem.offer(r.t, r.wrote(11, "2", "second"))
	if got := r.sent(11, 2); !slices.Equal(got, []string{"echo: first", "echo: second"}) {
		r.t.Errorf("answers %q", got)
	}
	want := []string{"message|answered", "edit|noted", "delete|noted", "message|answered"}
	if got := r.rows(`SELECT kind, state FROM inputs ORDER BY seq`); !slices.Equal(got, want) {
		r.t.Errorf("inputs %q", got)
	}
}

func editAddsTheMention(r *rig) {
	group := r.group()
	id := r.say(group, 11, "when do we meet?")
	r.say(group, 12, "@parley_test_bot hello")
	r.wait(group, 1)
	r.tg.EditIn(group.ID, id, "@parley_test_bot when do we meet?")
	if got := r.wait(group, 2); !strings.Contains(got[1].Text, "when do we meet?") {
		r.t.Errorf("answer %q", got[1].Text)
	}
	r.tg.EditIn(group.ID, id, "@parley_test_bot when and where do we meet?") // it was answered: noted
	r.say(group, 12, "@parley_test_bot bye")
	if got := r.wait(group, 3); !strings.Contains(got[2].Text, "bye") {
		r.t.Errorf("answer %q", got[2].Text)
	}
}

func editIsNoCommand(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "model: " + q.LastUser()} })
	ana := r.person(11)
	group := r.group()
	id := r.say(ana, 11, "hello")
	r.wait(ana, 1)
	r.tg.EditIn(ana.ID, id, "/stop")
	inGroup := r.say(group, 11, "hello all")
	r.tg.EditIn(group.ID, inGroup, "/whoami@parley_test_bot")
	if got := r.wait(group, 1)[0].Text; strings.Contains(got, "You are") {
		r.t.Errorf("an edit ran a command: %q", got)
	}
	r.say(ana, 11, "bye")
	if got := texts(r.wait(ana, 2)); !slices.Equal(got, []string{"model: hello", "model: bye"}) {
		r.t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT count(*) FROM inputs WHERE mode = 'command'`); got[0] != "0" {
		r.t.Errorf("%s commands came of edits", got[0])
	}
}

// T08: an event about another person's message changes nothing, queued or taken, whatever its sender is called.
func changesByOthersChangeNothing(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	first, second := r.wroteIn(21, 11, "1", "first"), r.wroteIn(21, 11, "2", "second")
	r.mem.offer(r.t, first)
	receive(r.t, h.asked, "the first turn")
	r.mem.offer(r.t, second)
	for i, by := range []channels.Sender{{User: channels.UserID(r.peer(12)), Name: "P" + r.peer(12)}, {User: "mallory", Name: first.From.Name}} {
		for _, target := range []channels.Inbound{first, second} {
			e, d := edited(target, "x"+string(rune('a'+i)), "/stop everything"), deleted(target)
			e.From, d.From = by, by
			d.Key += string(by.User)
			r.mem.offer(r.t, e, d)
		}
	}
	close(h.open)
	got := r.sent(21, 2)
	if !strings.HasSuffix(got[0], "first") || !strings.HasSuffix(got[1], "second") {
		r.t.Errorf("answers %q", got)
	}
	for _, b := range r.bodies() {
		if strings.Contains(b, "stop everything") || strings.Contains(b, "I deleted") {
			r.t.Error("another person's edit reached the turn")
		}
	}
	if got := r.rows(`SELECT state, count(*) FROM inputs WHERE kind <> 'message' GROUP BY state`); !slices.Equal(got, []string{"noted|8"}) {
		r.t.Errorf("edits and deletes by others are %q", got)
	}
}

// Who corrects a message at once has the correction answered, not the slip.
func editRightBehindIsAnswered(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "It now says") {
			return llmtest.Echo(q)
		}
		return h.reply(r.t, q.LastUser(), llmtest.Echo(q))
	})
	r.mem.offer(r.t, r.wrote(11, "0", "/queue followup debounce:1m"))
	r.sent(11, 1)
	first := r.wrote(11, "1", "two pears")
	r.mem.offer(r.t, first)
	receive(r.t, h.asked, "the turn")
	r.mem.offer(r.t, edited(first, "1", "two apples"))
	if got := r.sent(11, 2)[1]; !strings.Contains(got, "two apples") {
		r.t.Errorf("answer %q", got)
	}
	close(h.open)
	r.stored("inputs", `SELECT state, count(DISTINCT run_id), count(*) FROM inputs WHERE mode <> 'command' GROUP BY state`, "answered|1|2")
}

// talk is a conversation on a network in which somebody edits and deletes what they wrote.
type talk struct {
	name         string
	peer, thread string // as the journal has them
	mention      string // what a text needs to be for us; empty: everything is
	say          func(text string) (id string)
	edit         func(id, text string)
	remove       func(id string) // nil: the network tells bots of no deletion
	shown        func() string   // what people see of us
}

// talks are conversations side by side under one daemon. Each has a gate, where its first turn waits.
type talks struct {
	*rig
	list  []*talk
	gates []*gate
}

func newTalks(n int) *talks {
	ts := &talks{}
	for range n {
		ts.gates = append(ts.gates, newGate())
	}
	return ts
}

// tool is the gates; the number is the talk's.
func (ts *talks) tool() tools.Tool {
	return testTool{name: "gate", call: func(ctx context.Context, c tools.Call) (tools.Result, error) {
		var args struct{ N int }
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return tools.Result{}, err
		}
		return ts.gates[args.N].tool().call(ctx, c)
	}}
}

// script calls the talk's gate for what says "work <n>", and repeats the rest.
func (ts *talks) script(q *llmtest.Request) llmtest.Reply {
	var n int
	last := q.LastUser()
	if at := strings.Index(last, "work "); at >= 0 && len(q.ToolResults()) == 0 {
		if _, err := fmt.Sscanf(last[at:], "work %d", &n); err == nil {
			return llmtest.Reply{Calls: []llmtest.Call{{Name: "gate", Args: fmt.Sprintf(`{"n":%d}`, n)}}}
		}
	}
	return llmtest.Echo(q)
}

// play goes through the table in one conversation: edited and deleted while it waits, while a turn has it, and after the
// answer; a remark in a room that is not for us is edited, deleted, and edited so that it is.
func (ts *talks) play(t *testing.T, n int) {
	t.Parallel()
	k, r := ts.list[n], *ts.rig
	r.t = t
	mark := fmt.Sprintf("talk%d:", n)
	forUs := func(text string) string { return k.mention + mark + text }
	where := fmt.Sprintf(`FROM inputs i JOIN rooms r ON r.id = i.room_id WHERE r.peer = '%s' AND r.thread = '%s'`, k.peer, k.thread)
	count := func(what, cond string, want int) {
		t.Helper()
		r.stored(k.name+": "+what, "SELECT count(*) "+where+" AND "+cond, fmt.Sprint(want))
	}
	var remark string
	remarks := 0
	if k.mention != "" {
		gone := k.say(mark + "remark gone")
		remark = k.say(mark + "remark old")
		remarks = 2
		count("remarks", "kind = 'message' AND state = 'context'", remarks)
		k.edit(remark, mark+"remark new")
		count("the edit of a remark", "kind = 'edit' AND state = 'noted'", 1)
		if k.remove != nil {
			k.remove(gone)
			count("the deletion of a remark", "kind = 'delete' AND state = 'noted'", 1)
		}
	}
	edits, deletes := remarks/2, remarks/2

	taken := k.say(forUs(fmt.Sprintf("work %d with pears", n)))
	receive(t, ts.gates[n].called, k.name+": the tool call")
	waits, gone := k.say(forUs("bee one")), k.say(forUs("cee gone"))
	count("what waits", "kind = 'message' AND state = 'queued'", 2)
	k.edit(waits, forUs("bee two"))
	k.edit(taken, forUs("apples instead"))
	count("the edits", "kind = 'edit'", edits+2)
	if k.remove != nil {
		k.remove(gone)
		k.remove(taken)
		count("the deletions", "kind = 'delete'", deletes+2)
	}
	k.say(forUs("fence")) // a network's events are taken one after the other: what was before is with the turn by now
	count("the fence", "kind = 'message' AND text LIKE '%fence'", 1)
	close(ts.gates[n].open)
	answered := 4
	if k.remove != nil {
		answered = 3
	}
	count("the answers", "kind = 'message' AND state = 'answered'", answered)

	k.edit(waits, forUs("bee three"))
	count("an edit after the answer", "kind = 'edit'", edits+3)
	if k.remove != nil {
		k.remove(waits)
		count("a deletion after the answer", "kind = 'delete'", deletes+3)
	}
	k.say(forUs("end"))
	count("the last answer", "kind = 'message' AND state = 'answered'", answered+1)
	if k.mention != "" {
		k.edit(remark, forUs("remark for you"))
		count("an edit that adds the mention", "kind = 'edit' AND state = 'answered' AND text LIKE '%remark for you'", 1)
	}
	sent := fmt.Sprintf(`FROM parts p JOIN outbound o ON o.id = p.outbound_id JOIN rooms r ON r.id = o.room_id WHERE r.peer = '%s' AND r.thread = '%s'`, k.peer, k.thread)
	r.stored(k.name+": what is not sent yet", "SELECT count(*) "+sent+" AND p.state IN ('ready', 'sending', 'live')", "0")
	ts.judge(t, k, mark, where)
}

// judge wants what the model was asked, what people see, and what the journal holds to agree with the changes.
func (ts *talks) judge(t *testing.T, k *talk, mark, where string) {
	t.Helper()
	var told strings.Builder
	for _, b := range ts.llm.Bodies() {
		if strings.Contains(b, mark) {
			told.WriteString(b)
		}
	}
	prompts := told.String()
	want := []string{"It now says:) " + mark + "apples instead", mark + "bee two"}
	never := []string{mark + "bee one", mark + "bee three"}
	if k.remove != nil {
		want, never = append(want, "(I deleted my message.)"), append(never, mark+"cee gone")
	}
	if k.mention != "" {
		want = append(want, mark+"remark new", mark+"remark for you")
		if never = append(never, mark+"remark old"); k.remove != nil {
			never = append(never, mark+"remark gone")
		}
	}
	for _, text := range want {
		if !strings.Contains(prompts, text) {
			t.Errorf("%s: the model was never told %q", k.name, text)
		}
	}
	for _, text := range never {
		if strings.Contains(prompts, text) {
			t.Errorf("%s: the model was told %q", k.name, text)
		}
	}
	if shown := k.shown(); !strings.Contains(shown, mark+"bee two") || strings.Contains(shown, mark+"bee one") || k.remove != nil && strings.Contains(shown, mark+"cee gone") {
		t.Errorf("%s: people see %q", k.name, shown)
	}
	for _, row := range ts.rows("SELECT kind, state, i.reason, text " + where + " AND kind IN ('edit', 'delete') ORDER BY seq") {
		t.Logf("%s: %s", k.name, row)
		if strings.Contains(row, "not known here") {
			t.Errorf("%s: the message of %q was not found", k.name, row)
		}
	}
	if k.remove != nil {
		if got := ts.rows("SELECT state " + where + " AND kind = 'message' AND text = '" + mark + "cee gone'"); !slices.Equal(got, []string{"cancelled"}) {
			t.Errorf("%s: what was deleted while it waited is %q", k.name, got)
		}
	}
}

// R03, T08: what people edit and delete takes effect wherever the message is by then, in every sort of conversation.
func TestR03_T08_EditsAndDeletesTakeEffectOnEveryNetwork(t *testing.T) {
	t.Parallel()
	const slackDM, slackTalk, slackThreads = "D0ANA00001", "C0ROOM0002", "C0ROOM0003"
	const bot, ana = "@parley_test_bot ", "U0ANA00001"
	ts := newTalks(9)
	sl := slacktest.Start(t, slacktest.Options{NoLimits: true, PingEvery: 200 * time.Millisecond})
	sl.AddUser(slacktest.User{ID: ana, Name: "ana"})
	sl.AddChannel(slacktest.Channel{ID: slackDM, Kind: slacktest.IM, Members: []string{ana}})
	for _, id := range []string{slackTalk, slackThreads} {
		sl.AddChannel(slacktest.Channel{ID: id, Name: "room" + id, Kind: slacktest.Public, Members: []string{ana, sl.Team(0).Bot.ID}})
	}
	dc := discordtest.Start(t, discordtest.Options{NoLimits: true})
	const discordGuild, discordRoom, discordThread = "900000000000000001", "900000000000000002", "900000000000000003"
	dc.AddUser(discordtest.User{ID: anaOnDiscord, Name: "ana"})
	dc.AddGuild(discordtest.Guild{ID: discordGuild, Name: "Friends", Members: map[string][]string{anaOnDiscord: nil}})
	dc.AddChannel(discordtest.Channel{ID: anaDiscordDM, Type: discordtest.Direct, With: anaOnDiscord})
	dc.AddChannel(discordtest.Channel{ID: discordRoom, Type: discordtest.Text, Guild: discordGuild, Name: "general"})
	dc.AddChannel(discordtest.Channel{ID: discordThread, Type: discordtest.PublicThread, Guild: discordGuild, Name: "incident", Parent: discordRoom})
	const open = "access: {dm: open, groups: open, require_mention: true}}"
	ts.rig = newRig(t, setup{script: ts.script, opt: withTools(ts.tool()), extra: "sessions: {queue: {mode: followup}}" + quiet,
		more: fmt.Sprintf(`, {name: work, type: slack, bot_token: "%s", app_token: "%s", api_url: "%s", %s, {name: dc, type: discord, token: "%s", api_url: "%s", %s`,
			sl.Team(0).Token, sl.App().Token, sl.APIURL(), open, dc.Token(), dc.URL(), open)})
	for _, name := range []string{"work", "dc"} {
		ts.logged("channel="+name+" state=ready", 1)
	}

	telegram := func(name string, chat telegramtest.Chat, thread int64, mention string) *talk {
		k := &talk{name: name, peer: fmt.Sprint(chat.ID), mention: mention}
		if thread != 0 {
			k.thread = fmt.Sprint(thread)
		}
		number := func(id string) (n int64) {
			_, _ = fmt.Sscan(id, &n) // our own
			return n
		}
		k.say = func(text string) string {
			return fmt.Sprint(ts.tg.Message(telegramtest.In{Chat: chat.ID, From: telegramtest.User{ID: 11, First: "P11"}, Text: text, Thread: thread}))
		}
		k.edit = func(id, text string) { ts.tg.EditIn(chat.ID, number(id), text) }
		k.shown = func() string { return strings.Join(texts(ts.tg.View().Sent(chat.ID)), "\n") }
		return k
	}
	slack := func(name, channel, mention string, inThread bool) *talk {
		k := &talk{name: name, peer: channel, mention: mention}
		if inThread {
			k.thread = sl.Say(slacktest.Say{Channel: channel, User: ana, Text: "a root"})
		}
		k.say = func(text string) string {
			return sl.Say(slacktest.Say{Channel: channel, User: ana, Text: text, Thread: k.thread})
		}
		k.edit = func(id, text string) { sl.Edit(channel, id, text) }
		k.remove = func(id string) { sl.Delete(channel, id) }
		k.shown = func() string {
			var all []string
			for _, m := range sl.View().Sent(channel) {
				all = append(all, m.Shown())
			}
			return strings.Join(all, "\n")
		}
		return k
	}
	discord := func(name, channel, peer, thread, mention string) *talk {
		return &talk{name: name, peer: peer, thread: thread, mention: mention,
			say: func(text string) string {
				return dc.Write(discordtest.In{Channel: channel, From: anaOnDiscord, Text: text})
			},
			edit:   func(id, text string) { dc.EditIn(channel, id, text) },
			remove: func(id string) { dc.DeleteIn(channel, id) },
			shown: func() string {
				var all []string
				for _, m := range dc.Sent(channel) {
					all = append(all, m.Text)
				}
				return strings.Join(all, "\n")
			}}
	}
	forum := ts.tg.AddChat(telegramtest.Chat{ID: -1005002, Kind: telegramtest.Supergroup, Title: "forum", Forum: true})
	ts.list = []*talk{
		telegram("telegram dm", ts.person(11), 0, ""),
		telegram("telegram group", ts.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"}), 0, bot),
		telegram("telegram topic", forum, ts.tg.AddTopic(forum.ID, "Ops"), bot),
		slack("slack dm", slackDM, "", false),
		slack("slack room", slackTalk, "<@"+sl.Team(0).Bot.ID+"> ", false),
		slack("slack thread", slackThreads, "<@"+sl.Team(0).Bot.ID+"> ", true),
		discord("discord dm", anaDiscordDM, anaDiscordDM, "", ""),
		discord("discord room", discordRoom, discordRoom, "", "<@"+dc.Bot().ID+"> "),
		discord("discord thread", discordThread, discordRoom, discordThread, "<@"+dc.Bot().ID+"> "),
	}
	for n, k := range ts.list {
		t.Run(k.name, func(t *testing.T) { ts.play(t, n) })
	}
}
