package channeltest

import (
	"fmt"

	"parley/channels"
)

// The journal finds the message that an event is about by its key, which the core makes of the event's address and target
// (channels/key.go). What an adapter gives its messages must be the same key, wherever people talk.
func keyChecks() []check {
	return []check{
		{"R03 a message has the key of its id", Receiving, keyOfMessage},
		{"T08 an edit means its message by the key", EditsIn, means(EditIt, channels.KindEdit)},
		{"T08 a deletion means its message by the key", DeletesIn, means(DeleteIt, channels.KindDelete)},
		{"T08 a reaction means its message by the key", ReactionsIn, means(ReactTo, channels.KindReaction)},
		{"T08 a reply means what it answers by the key", Replies, replyMeans},
	}
}

// places are where people talk on this network.
func (r *rig) places() []Place {
	all := []Place{DM}
	if r.cfg.needs(Groups) != Absent {
		all = append(all, Group)
	}
	if r.cfg.needs(Threads) != Absent {
		all = append(all, Thread)
	}
	return all
}

func keyOfMessage(r *rig) {
	r.start()
	for _, p := range r.places() {
		in := r.message(p, r.write(p, Ana, "hello"))
		r.equal("Key in "+string(p), in.Key, channels.MessageKey(in.To, in.ID))
	}
}

// means has a person do something twice to what they wrote, of which each is an event of its own, but for a deletion.
func means(do Deed, kind channels.Kind) func(*rig) {
	return func(r *rig) {
		r.start()
		for _, p := range r.places() {
			said := r.message(p, r.write(p, Ana, "hello"))
			keys := map[string]bool{said.Key: true}
			texts := []string{"👍", "👀"}
			if do == DeleteIt {
				texts = []string{""}
			}
			for _, text := range texts {
				r.act(Event{Do: do, Place: p, Who: Ana, Target: said.ID, Text: text})
				in := r.get(fmt.Sprintf("the %s in %s", kind, p), func(in channels.Inbound) bool {
					return in.Kind == kind && in.To.Peer == said.To.Peer && in.Text == text && in.Target == said.ID
				})
				r.equal("key of what it is about in "+string(p), in.TargetKey(), said.Key)
				if in.Key == "" || keys[in.Key] {
					r.t.Errorf("%s: a %s has the key %q, which another event has, too", p, kind, in.Key)
				}
				keys[in.Key] = true
			}
		}
	}
}

func replyMeans(r *rig) {
	r.start()
	for _, p := range r.places() {
		said := r.message(p, r.write(p, Ana, "shall we?"))
		in := r.message(p, r.act(Event{Do: Write, Place: p, Who: Ana, Text: "yes", ReplyTo: said.ID}))
		r.equal("key of what it answers in "+string(p), channels.MessageKey(in.To, in.ReplyTo), said.Key)
	}
}
