package telegram

import (
	"context"
	"sync"
	"time"
)

// ownPosts knows the bot's latest posts in channels. Telegram delivers those back to it without a sender, and
// perhaps before the call that made them has returned; without this the bot would answer itself.
type ownPosts struct {
	mu      sync.Mutex
	flying  map[int64]int // calls that have not returned, by chat
	landed  chan struct{} // closed and renewed whenever one does
	ring    [512]ownPost
	written int
}

type ownPost struct{ chat, id int64 }

// flightWait bounds how long the receiving loop waits for a call to a channel.
const flightWait = 5 * time.Second

func newOwnPosts() *ownPosts {
	return &ownPosts{flying: map[int64]int{}, landed: make(chan struct{})}
}

// begin notes a post to a channel on its way. Call land with its id, or 0, when the call has returned.
func (o *ownPosts) begin(chat int64) (land func(id int64)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flying[chat]++
	return func(id int64) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.flying[chat]--; o.flying[chat] == 0 {
			delete(o.flying, chat)
		}
		if id != 0 {
			o.ring[o.written%len(o.ring)] = ownPost{chat, id}
			o.written++
		}
		close(o.landed)
		o.landed = make(chan struct{})
	}
}

// made says whether the post is ours, after it has waited for calls to that chat.
func (o *ownPosts) made(ctx context.Context, it ownPost) bool {
	ctx, cancel := context.WithTimeout(ctx, flightWait)
	defer cancel()
	for {
		o.mu.Lock()
		for _, p := range o.ring {
			if p == it {
				o.mu.Unlock()
				return true
			}
		}
		flying, landed := o.flying[it.chat] > 0, o.landed
		o.mu.Unlock()
		if !flying {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-landed:
		}
	}
}
