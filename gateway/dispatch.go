package gateway

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"parley/agentloop/lane"
	"parley/channels"
	"parley/gateway/approval"
	"parley/gateway/attachment"
	"parley/gateway/delivery"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/gateway/transport"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// dispatch is the way in. What a network delivered is judged, bound to an agent and a session, and journalled in
// one commit; only then does the adapter acknowledge, and only then does anything act on it.
type dispatch struct {
	store       *store.Store
	lanes       *lane.Lanes
	deliver     *delivery.Outbox
	transcripts *transcript.Cache
	people      *people
	moves       *transport.Moves
	places      *places
	stale       *delivery.Stale
	snapshot    func() *snapshot.Snapshot // of the configuration in force
	commands    *commands
	questions   *approval.Questions
	pressure    func() bool
	needs       func()                         // something waits for people
	usurps      func(*transport.Channel) bool  // another channel has its account
	accounts    func(*transport.Channel) error // binds the configured people to a channel's users
	now         func() time.Time
	log         *slog.Logger
	hide        *workspace.Redactor

	refusals                            *limiter
	accepted, duplicates, refused, shed atomic.Int64
}

// intake is dispatch as one channel sees it.
type intake struct {
	d *dispatch
	l *transport.Channel
}

var _ channels.Intake = intake{}

func (i intake) Report(s channels.Status) {
	if s.State == channels.Ready && i.d.usurps(i.l) {
		return // its end is told by the supervisor
	}
	i.l.Report(s)
}

func (i intake) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	return i.d.store.Newest(i.l.Network, i.l.Account())
}

// arrival is one inbound event on its way through.
type arrival struct {
	store.Arrival
	line     *transport.Channel // it came through
	in       channels.Inbound
	key      string
	mayBegin bool // it can start a turn at once if its session is idle
	reserved bool
	age      int // of what was remembered of people when the sender was looked up
	heard    int // number of the last line of others that the turn quotes
	stale    bool
	got      store.Accepted
}

// Receive journals a batch and returns after the commit.
func (i intake) Receive(ctx context.Context, batch ...channels.Inbound) (err error) {
	defer func() {
		if err != nil {
			i.l.Refused() // it comes again, however late
		}
	}()
	if !i.l.Traits.Local {
		if i.d.usurps(i.l) {
			return transport.ErrDuplicateAccount
		}
		if err := i.l.Sync(i.d.accounts); err != nil {
			return err
		}
	}
	_, err = i.d.receive(ctx, i.l, batch...)
	return err
}

// receive is the one way in, for channels and for the API.
func (d *dispatch) receive(ctx context.Context, l *transport.Channel, batch ...channels.Inbound) ([]*arrival, error) {
	if d.pressure() {
		d.shed.Add(int64(len(batch)))
		return nil, channels.ErrBusy
	}
	var list, all []*arrival
	for _, in := range batch {
		got, err := d.judged(l, in)
		if err != nil {
			return nil, err
		}
		list, all = append(list, got...), append(all, got...)
		if len(got) == 1 && d.commands.atDoor(got[0].Input) { // where the next message goes depends on it
			if err := d.take(ctx, list); err != nil {
				return nil, err
			}
			list = nil
		}
	}
	return all, d.take(ctx, list)
}

// take accepts what was judged together.
func (d *dispatch) take(ctx context.Context, list []*arrival) error {
	oneCode(list)
	d.reserve(list)
	return d.accept(ctx, list)
}

// judged is judge, with a panic in it noted beside the event: one event never holds up the rest.
func (d *dispatch) judged(l *transport.Channel, in channels.Inbound) (list []*arrival, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("judging panicked", "channel", l.Name, "key", in.Key, "panic", p, "stack", string(debug.Stack()))
			list, err = []*arrival{d.noted(l, in, "it could not be judged")}, nil
		}
	}()
	return d.judge(l, inbound(d.hide, in))
}

// noted is an event that is kept as a mere fact, without its text.
func (d *dispatch) noted(l *transport.Channel, in channels.Inbound, why string) *arrival {
	a := d.draft(l, in, routes.Verdict{})
	a.Input.State, a.Input.Reason, a.Input.Mode = workspace.InputNoted, why, workspace.ModeNote
	return a
}

// judge asks the gate and the routes, and says what is to be stored. It is nil for what is not stored at all.
func (d *dispatch) judge(l *transport.Channel, in channels.Inbound) ([]*arrival, error) {
	if in.Kind == channels.KindMoved && in.Text != "" {
		if err := d.moves.Follow(in.To, channels.PeerID(in.Text)); err != nil {
			return nil, err
		}
		d.places.forget()
		in.To.Peer = channels.PeerID(in.Text) // the event belongs to the room that goes on
	}
	facts := routes.Facts{Channel: l.Name, Local: l.Traits.Local, In: in}
	var known bool
	var err error
	age := d.people.stamp()
	if facts.Person, known, err = d.people.sender(l, &in); err != nil {
		return nil, err
	}
	about := in.TargetKey()
	if about == "" { // where a thread grows from a message, what is said in it answers that one
		about = in.To.RootKey()
	}
	if about != "" && facts.Person.ID != "" {
		if facts.Addressed, err = d.addressed(in.To, about); err != nil {
			return nil, err
		}
	}
	if _, called := d.snapshot().Table.Called(facts); called { // "@research, look" is said to us
		facts.Addressed = true
	}
	if facts.Was, err = d.moves.Was(in.To); err != nil {
		return nil, err
	}
	facts.Alone = d.snapshot().MainScope && d.people.alone()
	var place store.Place
	if !l.Traits.Local {
		if place, err = d.places.of(in.To); err != nil {
			return nil, err
		}
	}
	facts.Activation = place.Activation
	verdict := routes.Gate(l.Access(), facts)
	if verdict.Outcome == routes.Ignore {
		return nil, nil
	}
	a := d.draft(l, in, verdict)
	switch verdict.Outcome {
	case routes.Refuse, routes.Pair:
		d.refused.Add(1)
		if !d.refusals.allow(string(in.To.Network) + "/" + string(in.From.User)) {
			return nil, nil // counted; the journal keeps the first twenty an hour
		}
		a.Input.State, a.Input.Reason = workspace.InputRefused, verdict.Decision.Reason
		if verdict.Outcome == routes.Pair {
			return []*arrival{a}, d.pair(l, in, a)
		}
		return []*arrival{a}, nil
	case routes.Note:
		a.Input.State = workspace.InputNoted
		if in.Kind == channels.KindDelete {
			return d.deletions(a, facts.Person)
		}
		return []*arrival{a}, nil
	}
	a.Input.Person, a.Input.Role = facts.Person.ID, facts.Person.Role
	if !known {
		a.Guest, a.age = d.people.guest(in), age
		a.Input.Person, facts.Person = a.Guest.Person, workspace.Person{ID: a.Guest.Person, Role: workspace.Guest}
	}
	if verdict.Role != workspace.Nobody {
		a.Input.Role = verdict.Role
	}
	return d.bind(a, facts, verdict, place), nil
}

// draft is an input as far as the event itself says.
func (d *dispatch) draft(l *transport.Channel, in channels.Inbound, v routes.Verdict) *arrival {
	a := &arrival{line: l, in: in}
	if l.Adapter != nil { // the API has no room: who asks by it reads what came of it
		a.Room, a.Title, a.Handle = in.To, in.Title, in.Handle.Pack()
	}
	a.Backfill = l.Traits.Backfill && in.Kind == channels.KindMessage
	a.Input = workspace.Input{ID: workspace.InputID(d.store.IDs().New()), Source: string(in.To.Network), Account: string(in.To.Account), Key: in.Key,
		Kind: in.Kind, Sender: in.From.Name, Decision: v.Decision, Mode: workspace.ModeTurn, Sent: in.Time,
		Data: workspace.InputData{Message: in.ID, Channel: l.Name, User: in.From.User, BodyHash: in.Hash, Borrowed: in.Borrowed}}
	if in.Key == "" { // a program that does not mind sending twice
		a.Input.Key = "id:" + string(a.Input.ID)
	}
	if in.Target != "" {
		a.Input.TargetKey, a.Input.Data.Target = in.TargetKey(), in.Target
		a.Steered = amendment(in)
	}
	if v.Outcome == routes.Note {
		a.Input.Text = string(in.Data)
	}
	return a
}

// bind asks the routes, decides how the input starts, and adds the copies of a fan-out.
func (d *dispatch) bind(a *arrival, facts routes.Facts, v routes.Verdict, place store.Place) []*arrival {
	in := a.in
	snap := d.snapshot()
	a.Input.Text = in.Text
	a.Input.Data.ReplyTo, a.Input.Data.Quote, a.Input.Data.Album, a.Input.Data.Attachments = in.ReplyTo, in.Quote, in.Album, in.Attachments
	route := switched(snap.Table.Resolve(facts), place, workspace.Actor{Person: a.Input.Person, Role: a.Input.Role}, in.To.Kind)
	list := []*arrival{a}
	for _, f := range route.Fanout {
		c := *a
		d.copied(&c, f.Agent)
		c.Input.Agent, c.Input.Binding, c.Key, c.key = f.Agent, f.Binding, f.Session, f.Binding.Key
		c.Input.State = workspace.InputQueued
		list = append(list, &c)
	}
	a.Input.Agent, a.Input.Binding, a.Key, a.key = route.Agent, route.Binding, route.Session, route.Binding.Key
	switch {
	case v.Outcome == routes.Context:
		a.Input.State, a.Input.Mode = workspace.InputContext, workspace.ModeNote
		return list[:1]
	case in.Kind == channels.KindButton && approval.Pressed(in.Text) != "":
		a.Input.Text, a.Input.Mode, a.Input.State = approval.Pressed(in.Text), workspace.ModeCommand, workspace.InputQueued
		return list[:1]
	case in.Kind == channels.KindReaction || in.Kind == channels.KindButton:
		a.Input.State = workspace.InputNoted
		return list[:1]
	}
	a.Input.State = workspace.InputQueued
	if line := d.questions.Quoted(a.line, in); line != "" {
		a.Input.Text, a.Input.Mode = line, workspace.ModeCommand
		return list[:1]
	}
	if in.Kind == channels.KindMessage && isCommand(in) {
		a.Input.Mode = workspace.ModeCommand
		return list[:1]
	}
	for _, x := range list {
		x.stale = d.stale.Old(in.Time, a.line)
		x.mayBegin = in.Kind == channels.KindMessage && in.Album == "" && !x.stale && !attachment.Carries(&x.Input.Data) && !d.asksFirst(x)
	}
	return list
}

// copied makes an arrival another agent's copy; what is about a message is about each agent's copy of it.
func (d *dispatch) copied(c *arrival, reader workspace.AgentID) {
	c.Input.ID, c.Input.Key, c.Guest = workspace.InputID(d.store.IDs().New()), channels.CopyKey(c.Input.Key, string(reader)), nil
	if c.Input.TargetKey != "" {
		c.Input.TargetKey = channels.CopyKey(c.Input.TargetKey, string(reader))
	}
}

// asksFirst says that the turn must first ask the network what was said in the thread before.
func (d *dispatch) asksFirst(a *arrival) bool {
	if _, ok := a.line.Historian(a.in.To); !ok {
		return false
	}
	first, err := d.transcripts.Fresh(a.Key)
	return first || err != nil
}

// reserve holds the lanes of the batch's first messages in idle sessions: their commit begins the turn as well. What
// must first wait for something before it in this very batch (a command, an album, what others said) is queued.
func (d *dispatch) reserve(list []*arrival) {
	behind := map[string]bool{}
	for _, a := range list {
		begins := a.mayBegin && !behind[a.key]
		if a.Input.State == workspace.InputContext || a.Input.State == workspace.InputQueued {
			behind[a.key] = true
		}
		if !begins || !d.lanes.Reserve(a.key, a.Input.Person) {
			continue
		}
		a.reserved = true
		a.Begin = &store.Begin{Run: workspace.Run{ID: workspace.RunID(d.store.IDs().New()), Requester: a.Input.Person, Role: a.Input.Role, Deadline: d.now().Add(d.snapshot().TurnTimeout)},
			Entries: transcript.Bodies(d.overheard(a), []workspace.Input{a.Input}, nil)}
	}
}

// overheard is what others said in the session since its last turn; the turn that begins quotes it.
func (d *dispatch) overheard(a *arrival) []workspace.ContextLine {
	if a.Key.Kind == "" || a.Key.Kind == channels.DM {
		return nil
	}
	lines, last, err := d.transcripts.Said(a.Key)
	if err != nil {
		d.log.Error("what others said cannot be read", "session", a.key, "err", err)
	}
	a.heard = last
	return lines
}

// deletions are a deletion of a message, and of the copies that other agents have of it.
func (d *dispatch) deletions(a *arrival, by workspace.Person) ([]*arrival, error) {
	list := []*arrival{a}
	for _, id := range d.snapshot().Order {
		c := *a
		d.copied(&c, id)
		switch _, err := d.store.InputByKey(c.Input.Source, c.Input.Account, c.Input.TargetKey); {
		case errors.Is(err, workspace.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		}
		if err := d.deletion(&c, by); err != nil {
			return nil, err
		}
		list = append(list, &c)
	}
	return list, d.deletion(a, by)
}

// deletion lets a message that was taken back follow its writer's message: what is not begun is cancelled, what is
// under way is told. Networks often do not say who deleted; where they say that it was another person, it is noted.
func (d *dispatch) deletion(a *arrival, by workspace.Person) error {
	target, err := d.store.InputByKey(a.Input.Source, a.Input.Account, a.Input.TargetKey)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	remark := target.State == workspace.InputContext // it is gone, whoever took it away: it must not be quoted
	if !remark && (a.in.From.User != "" && by.ID != target.Person || !target.Decision.Allow) || target.Binding.Key == "" {
		return nil
	}
	key, err := workspace.ParseKey(target.Binding.Key)
	if err != nil {
		return err
	}
	a.Input.Person, a.Input.Role, a.Input.Sender, a.Input.Agent, a.Input.Binding = target.Person, target.Role, target.Sender, target.Agent, target.Binding
	a.Key, a.key, a.Input.State = key, target.Binding.Key, workspace.InputQueued
	return nil
}

func isCommand(in channels.Inbound) bool {
	return in.Command || in.To.Kind == channels.DM && strings.HasPrefix(in.Text, "/")
}

// addressed says whether the message that an edit, delete or reaction is about, or that a thread grows from, was for us.
func (d *dispatch) addressed(to channels.Address, about string) (bool, error) {
	target, err := d.store.InputByKey(string(to.Network), string(to.Account), about)
	if errors.Is(err, workspace.ErrNotFound) {
		return false, nil
	}
	return err == nil && target.Decision.Allow && target.State != workspace.InputContext, err
}

// pair stores a stranger's request and sends the code, at most one in ten minutes.
func (d *dispatch) pair(l *transport.Channel, in channels.Inbound, a *arrival) error {
	last, err := d.store.LastPairing(in.To.Network, in.To.Account, in.From.User)
	if err != nil {
		return err
	}
	code := routes.NewCode()
	fresh := workspace.Pairing{ID: d.store.IDs().New(), Channel: l.Name, Network: in.To.Network, Account: in.To.Account, User: in.From.User, Name: in.From.Name}
	p, send := routes.AskPairing(last, fresh, code, d.now())
	if !send {
		return nil
	}
	a.Pairing = &p
	text := "I don't know you yet. Ask my owner to approve this code within ten minutes: " + code + "\n\nOn the machine that I run on: parley pairing approve " + code
	a.Replies = []store.NewOutbound{delivery.NoticeTo(a.Input.ID, "refused", "", workspace.OutRefusal, text)}
	return nil
}

// oneCode keeps the first code of each stranger in a batch: the journal did not know of it when the next was judged.
func oneCode(list []*arrival) {
	sent := map[channels.UserID]bool{}
	for _, a := range list {
		if a.Pairing == nil {
			continue
		}
		if sent[a.Pairing.User] {
			a.Pairing, a.Replies = nil, nil
			continue
		}
		sent[a.Pairing.User] = true
	}
}

// accept commits the batch, then tells lanes, rooms and memory what is stored.
func (d *dispatch) accept(ctx context.Context, list []*arrival) error {
	if len(list) == 0 {
		return nil
	}
	batch := make([]store.Arrival, len(list))
	for i, a := range list {
		batch[i] = a.Arrival
	}
	got, err := d.store.Accept(batch...)
	if errors.Is(err, workspace.ErrConflict) && d.release(list) { // a session was not idle after all: all of them queue
		for i := range batch {
			batch[i].Begin = nil
		}
		got, err = d.store.Accept(batch...)
	}
	if err != nil {
		d.release(list)
		return d.apart(ctx, list, err)
	}
	for i, a := range list {
		a.got = got[i]
		d.stored(ctx, a, got[i])
	}
	return nil
}

// apart accepts a batch that failed one by one: an input that the store will never take is noted without its text, so
// that it does not hold up the others.
func (d *dispatch) apart(ctx context.Context, list []*arrival, err error) error {
	for _, passing := range []error{channels.ErrUnwritable, channels.ErrBusy, store.ErrClosed, store.ErrDamaged} {
		if errors.Is(err, passing) {
			return err
		}
	}
	if len(list) == 1 {
		a := list[0]
		if a.Input.State == workspace.InputNoted || a.line.Adapter == nil { // a program is told so
			return err
		}
		d.log.Error("input cannot be stored as it is", "key", a.in.Key, "err", err)
		return d.accept(ctx, []*arrival{d.noted(a.line, a.in, "it could not be stored: "+d.hide.Redact(clip.Runes(err.Error(), 300)))})
	}
	for _, a := range list {
		a.Begin = nil
		if err := d.accept(ctx, []*arrival{a}); err != nil {
			return err
		}
	}
	return nil
}

// release gives back the lanes that were held for the batch.
func (d *dispatch) release(list []*arrival) (any bool) {
	for _, a := range list {
		if a.reserved {
			a.reserved, any = false, true
			d.lanes.Release(a.key)
		}
	}
	return any
}

// stored acts on one committed input.
func (d *dispatch) stored(ctx context.Context, a *arrival, got store.Accepted) {
	if a.reserved && got.Begun == nil { // it came twice, or another run of the session lives after all
		d.lanes.Release(a.key)
	}
	if got.Duplicate {
		d.duplicates.Add(1)
		return
	}
	d.accepted.Add(1)
	in := got.Input
	if in.RoomID != "" {
		d.deliver.Know(in.RoomID, a.Room)
	}
	if a.Guest != nil && a.Guest.Person == in.Person { // else an earlier message of the batch made them known
		d.people.learn(account{a.Guest.Network, a.Guest.Account, a.Guest.User}, workspace.Person{ID: a.Guest.Person, Role: workspace.Guest}, a.age)
	}
	d.deliver.PushAll(got.Replies)
	if a.Pairing != nil {
		d.needs()
	}
	switch {
	case got.Begun != nil:
		if a.heard > 0 {
			d.transcripts.Heard(a.key, a.heard) // they went into the entry
		}
		d.lanes.Start(a.key, got.Begun, in)
	case got.Amended != nil:
		d.amended(in, got.Amended)
	case in.State == workspace.InputContext:
		d.transcripts.Note(a.key, in.Seq, workspace.ContextLine{Name: in.Sender, Text: in.Text})
	case in.State != workspace.InputQueued:
	case a.stale:
		d.stale.SetAside(in)
	case d.commands.atDoor(in):
		d.commands.run(context.WithoutCancel(ctx), in)
	case in.Mode == workspace.ModeCommand && !d.commands.ordered(in.Text):
		d.commands.beside(ctx, in)
	default:
		d.lanes.Offer(a.key, in)
	}
}

// amended carries an edit or delete to where its message now is.
func (d *dispatch) amended(in workspace.Input, am *store.Amended) {
	key := am.Target.Binding.Key
	if am.Was == workspace.InputContext && in.State == workspace.InputNoted {
		d.transcripts.Amend(key, am.Target.Seq, in.Text)
	}
	switch {
	case am.Was == workspace.InputQueued && in.Kind == channels.KindDelete:
		d.lanes.Remove(key, am.Target.Seq)
	case am.Was == workspace.InputQueued:
		d.lanes.Replace(key, am.Target.Seq, in.Text)
	case am.Was == workspace.InputTaken && in.State == workspace.InputQueued:
		d.lanes.Steer(key, in)
	case in.State == workspace.InputQueued:
		d.lanes.Offer(in.Binding.Key, in)
	}
}

// amendment is what a turn is told that has taken the message.
func amendment(in channels.Inbound) string {
	if in.Kind == channels.KindDelete {
		return "(I deleted my message.)"
	}
	return "(I edited my message. It now says:) " + in.Text
}
