package channeltest

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"parley/channels"
)

func receiveChecks() []check {
	return []check{
		{"T08 a message arrives whole", Receiving, arrivesWhole},
		{"R03 a message offered again is equal", Receiving, equalAgain},
		{"R03 different messages have different keys", Receiving, keysDiffer},
		{"R01 nothing is acknowledged while the gateway is busy", Receiving, busyIsNotAcked},
		{"R01 what was not taken comes again after a restart", Receiving, survivesRestart},
		{"what was taken is acknowledged", Acks, takenIsAcked},
		{"messages keep their order", Receiving, keepsOrder},
		{"a panic in Receive takes nothing and stops nothing", Receiving, panicIsolated},
		{"a group message names its group", Groups, namesGroup},
		{"a thread message names its thread", Threads, namesThread},
		{"a mention of the bot is told and removed", Mentions, mentionTold},
		{"own messages are not heard", OwnMessages, ownUnheard},
		{"an unreadable event is passed on and passed by", Unreadable, unreadablePasses},
	}
}

// arrivesWhole: everything that the core relies on is there.
func arrivesWhole(r *rig) {
	r.start()
	before := time.Now().Add(-time.Hour)
	id := r.write(DM, Ana, "hello, 世界 😀")
	in := r.message(DM, id)
	r.equal("Kind", in.Kind, channels.KindMessage)
	r.equal("Text", in.Text, "hello, 世界 😀")
	r.equal("From.User", in.From.User, r.w.User(Ana))
	r.equal("To", in.To, r.w.Address(DM))
	r.equal("From.Bot", in.From.Bot, false)
	r.equal("Command", in.Command, false)
	if in.Key == "" {
		r.t.Errorf("Key is empty")
	}
	if in.Time.Before(before) || in.Time.After(time.Now().Add(time.Hour)) {
		r.t.Errorf("Time is %v, want the network's own time", in.Time)
	}
	if a, ok := channels.As[channels.Accounter](r.ch); ok {
		r.equal("Account", a.Account(), r.w.Account())
	}
}

func (r *rig) equal(what string, got, want any) {
	r.t.Helper()
	if !reflect.DeepEqual(got, want) {
		r.t.Errorf("%s is %#v, want %#v", what, got, want)
	}
}

// known has people write once in these places, so that a network that must be backfilled knows where to look.
func (r *rig) known(places ...Place) {
	r.t.Helper()
	for _, p := range places {
		r.message(p, r.write(p, Ana, "good morning"))
	}
}

// equalAgain: two deliveries of one message are one value, also when a new process reads the second.
func equalAgain(r *rig) {
	r.start()
	r.known(DM, Group)
	r.in.decide(func(context.Context, int, []channels.Inbound) error { return channels.ErrBusy })
	r.write(DM, Ana, "once")
	r.write(Group, Ben, "twice")
	r.until("a message to be offered twice", func() bool { return len(r.offersOf("once")) >= 2 })
	r.restart()
	r.until("both messages after a restart", func() bool { return len(r.texts()) >= 4 })
	for _, text := range []string{"once", "twice"} {
		offers := r.offersOf(text)
		for _, in := range offers {
			if !reflect.DeepEqual(in, offers[0]) {
				r.t.Errorf("offered again as\n%+v\nwas\n%+v", in, offers[0])
				break
			}
		}
	}
}

// offersOf are all offers of the message with that text, without their handles: secrets that live shorter than a message.
func (r *rig) offersOf(text string) []channels.Inbound {
	var all []channels.Inbound
	for _, o := range r.in.offered() {
		for _, in := range o.batch {
			if in.Text == text {
				in.Handle = channels.ReplyHandle{}
				all = append(all, in)
			}
		}
	}
	return all
}

func (r *rig) texts() []string {
	var all []string
	for _, in := range r.in.taken() {
		if in.Kind == channels.KindMessage {
			all = append(all, in.Text)
		}
	}
	return all
}

func keysDiffer(r *rig) {
	r.start()
	r.write(DM, Ana, "same words")
	r.write(DM, Ana, "same words")
	r.write(OtherDM, Ben, "same words") // on some networks ids count per room
	r.write(OtherDM, Ben, "same words")
	r.until("four messages", func() bool { return len(r.texts()) >= 4 })
	keys := map[string]channels.Inbound{}
	for _, in := range r.in.taken() {
		if old, twice := keys[in.Key]; twice && (old.ID != in.ID || old.To != in.To) {
			r.t.Errorf("message %s in %s and message %s in %s share the key %q", old.ID, old.To, in.ID, in.To, in.Key)
		}
		keys[in.Key] = in
	}
}

// busyIsNotAcked: ErrBusy and ErrUnwritable mean "offer the same again, and do not acknowledge".
func busyIsNotAcked(r *rig) {
	r.start()
	const refusals = 4
	var offers, early atomic.Int32
	r.in.decide(func(_ context.Context, _ int, batch []channels.Inbound) error {
		for _, in := range batch {
			if r.w.Acked(DM, in.ID) {
				early.Add(1)
			}
		}
		switch n := offers.Add(1); {
		case n > refusals:
			return nil
		case n%2 == 0:
			return channels.ErrUnwritable
		}
		return channels.ErrBusy
	})
	id := r.write(DM, Ana, "patience")
	r.message(DM, id)
	if early.Load() > 0 {
		r.t.Errorf("acknowledged before it was taken")
	}
	for i, o := range r.in.offered()[:refusals] {
		if len(o.batch) == 0 || o.batch[0].ID != id {
			r.t.Errorf("offer %d does not begin with the message that was not taken", i)
		}
	}
}

func survivesRestart(r *rig) {
	r.start()
	r.known(DM)
	before := len(r.in.offered())
	r.in.decide(func(ctx context.Context, _ int, _ []channels.Inbound) error {
		<-ctx.Done() // the process dies before the commit
		return ctx.Err()
	})
	id := r.write(DM, Ana, "do not lose me")
	r.until("the message to be offered", func() bool { return len(r.in.offered()) > before })
	r.stop()
	if r.w.Acked(DM, id) {
		r.t.Errorf("acknowledged although Receive never returned nil")
	}
	r.in.renew()
	if r.open() {
		r.start()
	}
	r.message(DM, id)
}

func takenIsAcked(r *rig) {
	r.start()
	id := r.write(DM, Ana, "take me")
	r.message(DM, id)
	r.sees("the acknowledgement", func() bool { return r.w.Acked(DM, id) })
}

func keepsOrder(r *rig) {
	r.start()
	const n = 40
	for i := range n {
		r.write(DM, Ana, fmt.Sprint(i))
	}
	r.until("all messages", func() bool { return len(r.texts()) >= n })
	next := 0
	for _, text := range r.texts() {
		if next < n && text == fmt.Sprint(next) {
			next++
		}
	}
	if next != n {
		r.t.Errorf("order broken: %v", r.texts())
	}
}

func panicIsolated(r *rig) {
	r.start()
	r.in.decide(func(_ context.Context, n int, _ []channels.Inbound) error {
		if n == 0 {
			panic("a fault in the gateway")
		}
		return nil
	})
	id := r.write(DM, Ana, "boom")
	r.until("the message to be offered again after the panic", func() bool {
		select {
		case err := <-r.ended: // only a panic or Fatal ends the supervisor here
			r.ended <- err
			r.t.Fatalf("Run ended: %v", err)
		default:
		}
		for _, in := range r.in.taken() {
			if in.ID == id {
				return true
			}
		}
		return false
	})
}

func namesGroup(r *rig) {
	r.start()
	in := r.message(Group, r.write(Group, Ben, "to all"))
	r.equal("To", in.To, r.w.Address(Group))
	r.equal("From.User", in.From.User, r.w.User(Ben))
	r.equal("Mentioned", in.Mentioned, false)
	if in.To.Kind == channels.DM {
		r.t.Errorf("Kind of a group is dm")
	}
}

func namesThread(r *rig) {
	r.start()
	in := r.message(Thread, r.write(Thread, Ana, "in the thread"))
	r.equal("To", in.To, r.w.Address(Thread))
	if in.To.Thread == "" && r.w.Address(Thread).Peer == r.w.Address(Group).Peer {
		r.t.Errorf("a thread message has no Thread")
	}
	in = r.message(Group, r.write(Group, Ana, "outside"))
	r.equal("To of a message outside the thread", in.To, r.w.Address(Group))
}

func mentionTold(r *rig) {
	r.start()
	id := r.act(Event{Do: Write, Place: Group, Who: Ana, Text: "what is new?", Mention: true})
	in := r.message(Group, id)
	r.equal("Mentioned", in.Mentioned, true)
	r.equal("Text without the mention", in.Text, "what is new?")
	in = r.message(Group, r.write(Group, Ana, "write to x@parley.example"))
	r.equal("Mentioned by a mail address", in.Mentioned, false)
	r.equal("Text", in.Text, "write to x@parley.example")
}

func ownUnheard(r *rig) {
	r.start()
	own := r.send(r.post(Echo, "it was me"))
	r.fence(Echo)
	for _, in := range r.in.taken() {
		if in.Kind == channels.KindMessage && in.To.Peer == r.w.Address(Echo).Peer && (in.ID == own || in.Text == "it was me") {
			r.t.Errorf("the bot's own message was received: %+v", in)
		}
	}
}

func unreadablePasses(r *rig) {
	r.start()
	r.act(Event{Do: Garbage, Place: DM})
	id := r.write(DM, Ana, "and on we go")
	r.message(DM, id)
	got := r.get("the unreadable event", func(in channels.Inbound) bool { return in.Kind == channels.KindUnparsed })
	if len(got.Data) == 0 || got.Key == "" {
		r.t.Errorf("unparsed without its raw event or key: %+v", got)
	}
}
