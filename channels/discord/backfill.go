package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/channels"
)

const (
	pageSize    = 100
	readsAtOnce = 4  // channels; Discord takes 50 calls in a second
	maxPages    = 20 // of one channel, so 2,000 messages; what is older would be parked as stale anyhow
	// overlap is read again before the newest known message, since Discord promises no order: the journal's keys dedupe it.
	overlap = time.Minute
)

// begin notes that a connection is up. What was missed is read back once the servers have come: which roles the bot has,
// and where something is new, stands in them.
func (r *receiver) begin(ctx context.Context, p payload) {
	r.missed, r.waiting, r.newer, r.resumed = true, map[string]bool{}, nil, p.Type == "RESUMED"
	if !r.resumed {
		if hello, err := decode[ready](p.Data); err == nil {
			for _, g := range hello.Guilds {
				r.waiting[g.ID] = true
			}
		}
	}
	if len(r.waiting) == 0 {
		r.readBack(ctx)
	}
}

// arrived notes a server after READY. One that comes when all else was read back already is read by itself: which of its
// channels have news stands in it.
func (r *receiver) arrived(ctx context.Context, p payload) {
	g, err := decode[guild](p.Data)
	if err != nil || !r.waiting[g.ID] || g.Away { // one that is away comes when it is back
		return
	}
	delete(r.waiting, g.ID)
	switch {
	case r.missed && len(r.waiting) == 0:
		r.readBack(ctx)
	case !r.missed:
		r.fillAll(ctx, slices.DeleteFunc(r.gaps(r.newer), func(hole gap) bool { return hole.guild != g.ID }))
		if len(r.waiting) == 0 {
			r.newer = nil
		}
	}
}

// readBack journals what was written while nobody listened: in every room that the journal knows from its newest message
// on, and in channels of servers where something is newer than all that the journal has. It does not give up while
// Discord is merely away, since what comes behind it must not overtake it.
//
// All rooms are journalled together, in the order of their ids: whatever the journal's newest message is when the process
// dies, nothing older is missing, neither in its room nor in a thread of it.
func (r *receiver) readBack(ctx context.Context) {
	r.missed = false
	newest, err := r.newest(ctx)
	if err != nil {
		return // ctx ended
	}
	if r.newer = newest; len(r.waiting) == 0 {
		r.newer = nil
	}
	if r.fillAll(ctx, r.gaps(newest)) {
		r.ready()
	}
}

// fillAll journals what is found behind the gaps; false: ctx ended.
func (r *receiver) fillAll(ctx context.Context, gaps []gap) bool {
	found := make([][]missed, len(gaps))
	var reads errgroup.Group
	reads.SetLimit(readsAtOnce)
	for i, g := range gaps {
		reads.Go(func() (err error) {
			found[i], err = r.fill(ctx, g)
			return err
		})
	}
	if reads.Wait() != nil {
		return false
	}
	all := slices.Concat(found...)
	slices.SortStableFunc(all, func(a, b missed) int {
		switch {
		case a.id == b.id:
			return 0
		case older(a.id, b.id):
			return -1
		}
		return 1
	})
	for some := range slices.Chunk(all, pageSize) {
		var b batch
		for _, m := range some {
			b.in = append(b.in, m.in)
		}
		r.deliver(ctx, &b)
	}
	return ctx.Err() == nil
}

// missed is one message that was read back.
type missed struct {
	id string
	in channels.Inbound
}

// newest asks the journal until it answers.
func (r *receiver) newest(ctx context.Context) (newest map[channels.PeerID]channels.MessageID, err error) {
	err = r.patiently(ctx, func() error {
		newest, err = r.in.Newest(ctx)
		return err
	})
	return newest, err
}

// gap is a channel with the id behind which its messages are unknown.
type gap struct {
	id, after string
	guild     string
}

// gaps are the channels to read.
func (r *receiver) gaps(newest map[channels.PeerID]channels.MessageID) []gap {
	var all []gap
	latest := ""
	for peer, id := range newest {
		if !idFormat().MatchString(string(id)) || !idFormat().MatchString(string(peer)) {
			continue
		}
		if older(latest, string(id)) {
			latest = string(id)
		}
		if ch, ok := r.c.rooms.find(string(peer)); ok {
			if after := before(string(id)); older(after, ch.Last) {
				all = append(all, gap{ch.ID, after, ch.Guild})
			}
			continue
		}
		// Mostly a conversation with one person: nothing tells whether it has news. A session that goes on has told of them.
		if r.resumed && r.c.clock.Now().Sub(born(string(id))) > 24*time.Hour {
			continue
		}
		all = append(all, gap{id: string(peer), after: before(string(id))})
	}
	if latest == "" {
		return nil // the first start: there is no gap
	}
	for _, ch := range r.c.rooms.all() {
		if _, known := newest[channels.PeerID(ch.ID)]; known {
			continue
		}
		after := latest
		if ch.thread() {
			after = cmp.Or(string(newest[channels.PeerID(ch.Parent)]), latest)
		}
		if after = before(after); older(after, ch.Last) {
			all = append(all, gap{ch.ID, after, ch.Guild})
		}
	}
	return all
}

// before is the id of a moment before another.
func before(id string) string { return at(born(id).Add(-overlap)) }

// fill reads one channel forward.
func (r *receiver) fill(ctx context.Context, g gap) (all []missed, err error) {
	members := map[string]*member{}
	for range maxPages {
		var page []json.RawMessage
		err := r.patiently(ctx, func() error {
			return r.c.rest.get(ctx, "read what was missed", "channels/"+g.id+"/messages?limit=100&after="+g.after, &page)
		})
		if err != nil {
			if ctx.Err() != nil {
				return all, err
			}
			r.c.log.Debug("a channel cannot be read back", "peer", g.id, "err", err)
			return all, nil // it is gone, or hidden from us
		}
		if len(page) > 0 && g.guild == "" {
			if ok, err := r.placed(ctx, &g); err != nil || !ok {
				return all, err
			}
		}
		for _, raw := range page {
			var b batch
			id := r.past(ctx, g, raw, members, &b)
			for _, in := range b.in {
				all = append(all, missed{id, in})
			}
			if older(g.after, id) {
				g.after = id
			}
		}
		if len(page) < pageSize || ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	r.c.log.Warn("backfill limit reached in a channel", "peer", g.id)
	return all, nil
}

// placed asks what a channel is of which only the journal knows: a conversation with one person, or the channel of a server
// that has not come. REST's messages do not say it, and one must never be taken for the other. false: nobody knows.
func (r *receiver) placed(ctx context.Context, g *gap) (bool, error) {
	var ch channel
	err := r.patiently(ctx, func() error { return r.c.rest.get(ctx, "look at a channel", "channels/"+g.id, &ch) })
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if said := refusalOf(err); said != nil && said.status == http.StatusNotFound && said.code == 0 {
		return true, nil // a server in Discord's place that has no such call
	}
	if err != nil || ch.Guild == "" && !ch.direct() {
		r.c.log.Warn("channel of a missed message not found", "peer", g.id, "err", err)
		return false, nil
	}
	g.guild = ch.Guild
	r.c.rooms.put(ch)
	return true, nil
}

// past converts one message of a page, and gives its id. REST leaves out the server, and the writer's roles there.
func (r *receiver) past(ctx context.Context, g gap, raw json.RawMessage, members map[string]*member, b *batch) (id string) {
	var just struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(raw, &just) // one without an id is the oldest
	defer func() {
		if v := recover(); v != nil { // one odd message costs neither the page nor the process
			r.c.log.Error("panic while a message was read back", "err", v, "stack", string(debug.Stack()))
			b.in, id = nil, just.ID
			r.unreadable("MESSAGE_CREATE", raw, b)
		}
	}()
	m, err := decode[message](raw)
	if err != nil {
		r.unreadable("MESSAGE_CREATE", raw, b)
		return just.ID
	}
	m.Guild = g.guild
	if m.Guild != "" && m.Author != nil && m.Webhook == "" && m.Author.ID != r.self.id {
		m.Member = r.member(ctx, m.Guild, m.Author.ID, members)
	}
	if err := r.message(ctx, m, raw, b); err != nil {
		r.c.log.Debug("channel of a message not found", "peer", g.id, "err", err) // ctx ended
	}
	return m.ID
}

// member asks for a writer's roles, once a channel. Who has left has none.
func (r *receiver) member(ctx context.Context, guild, id string, members map[string]*member) *member {
	if m, ok := members[id]; ok {
		return m
	}
	var m *member
	_ = r.patiently(ctx, func() error { // who cannot be asked about has no roles
		return r.c.rest.get(ctx, "ask for a member", "guilds/"+guild+"/members/"+id, &m)
	})
	members[id] = m
	return m
}

// patiently repeats what fails because Discord, or the journal, is away. It returns ctx's error, or one that says that
// asking again is no use.
func (r *receiver) patiently(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait := r.c.pace.backoff(try)
		var e *channels.Error
		if errors.As(err, &e) {
			if e.Class != channels.Retry && e.Class != channels.Unknown {
				return err
			}
			if said := refusalOf(err); said == nil || said.status != http.StatusTooManyRequests || e.After > 5*time.Second {
				r.report(channels.Status{State: channels.Connecting, Cause: "what was missed cannot be read yet: " + err.Error(), Err: err, Hint: "It is tried on."})
			}
			wait = max(e.After, min(wait, 10*time.Second))
			if e.After > 0 {
				wait = e.After
			}
		}
		if !channels.Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}
