package discord

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

// handleLives is how long an interaction's token works, a little less than Discord's fifteen minutes.
const handleLives = 15*time.Minute - 15*time.Second

// answerWithin is less than Discord's three seconds, and than a shutdown may take.
const answerWithin = 2500 * time.Millisecond

// Kinds of handles. A command's answer takes the place of "… is thinking"; what answers a button is a message of its own.
const (
	ofCommand = "c:"
	ofButton  = "b:"
)

// interacted adds a command or a pressed button. Discord wants an answer within three seconds, which says no more than that
// it was heard: it goes out once the journal has the event.
func (r *receiver) interacted(ctx context.Context, i *interaction, b *batch) error {
	if i.Type != typeCommand && i.Type != typeComponent {
		return nil
	}
	who := i.User
	if i.Member != nil && i.Member.User != nil {
		who = i.Member.User
	}
	if i.ID == "" || i.Token == "" || i.Channel == "" || who == nil {
		return errShape
	}
	if i.Place != nil && i.Guild != "" {
		if _, known := r.c.rooms.find(i.Channel); !known {
			i.Place.Guild = i.Guild
			r.c.rooms.put(*i.Place)
		}
	}
	to, title, err := r.place(ctx, i.Guild, i.Channel)
	if err != nil {
		return err
	}
	in := channels.Inbound{From: sender(who, i.Member), To: to, Time: r.c.clock.Now().UTC(), Server: i.Guild, Title: title}
	kind := ofCommand
	if i.Type == typeCommand {
		in.Key, in.Kind, in.ID, in.Command = "i:"+i.ID, channels.KindMessage, channels.MessageID(i.ID), true
		in.Text, in.Mentioned = typed("/"+i.Data.Name, i.Data.Options), true
	} else {
		if i.Message == nil || i.Data.CustomID == "" {
			return nil // a menu, or a message that is not ours
		}
		kind = ofButton
		in.Key, in.Kind, in.Target, in.Text = "b:"+i.ID, channels.KindButton, channels.MessageID(i.Message.ID), i.Data.CustomID
	}
	in.Handle = channels.ReplyHandle{Secret: kind + i.Token, Expires: in.Time.Add(handleLives)}
	done := r.c.acks.begin(i.Token)
	b.in = append(b.in, in)
	b.after = append(b.after, func() {
		r.answers.Go(func() error {
			defer done()
			if r.answer(ctx, i) && i.Type == typeCommand {
				said := r.c.acks.expect(i.Token)
				r.unheard.Go(func() { r.giveUp(ctx, i.Token, said) })
			}
			return nil
		})
	})
	return nil
}

// typed is a command as if it had been typed: its name, subcommands and values in order.
func typed(name string, options []option) string {
	parts := []string{name}
	for _, o := range options {
		if len(o.Options) > 0 || o.Value == nil {
			parts = append(parts, typed(o.Name, o.Options))
		} else {
			parts = append(parts, fmt.Sprint(o.Value))
		}
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// answer tells Discord that an interaction was heard: a command's answer will follow, for its sender alone in a server; a
// button's message stays as it is.
func (r *receiver) answer(ctx context.Context, i *interaction) (heard bool) {
	// A shutdown must not leave it unanswered: it is journalled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	body := discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredMessageUpdate}
	if i.Type == typeCommand {
		body.Type, body.Data = discordgo.InteractionResponseDeferredChannelMessageWithSource, &discordgo.InteractionResponseData{}
		if i.Guild != "" {
			body.Data.Flags = discordgo.MessageFlagsEphemeral
		}
	}
	err := r.c.rest.call(ctx, "answer an interaction", http.MethodPost, "interactions/"+i.ID+"/"+i.Token+"/callback", body, nil)
	if err != nil && !says(err, answeredBefore) {
		r.c.log.Warn("an interaction was not answered in time", "err", err)
	}
	return err == nil
}

// giveUp takes "… is thinking" away from a command that nobody answers, such as one of a stranger. An answer that comes
// later is a message of its own.
func (r *receiver) giveUp(ctx context.Context, token string, said <-chan struct{}) {
	defer r.c.acks.said(token)
	t := time.NewTimer(r.c.pace.thinking)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return
	case <-said:
		return
	case <-t.C:
	}
	hook := "webhooks/" + r.self.app + "/" + token + "/messages/@original"
	var first message
	if err := r.c.rest.get(ctx, "look at the command's answer", hook, &first); err != nil || first.Flags&int(discordgo.MessageFlagsLoading) == 0 {
		return
	}
	if err := r.c.rest.call(ctx, "end an unanswered command", http.MethodDelete, hook, nil, nil); err != nil {
		r.c.log.Debug("deferred command response not closed", "err", err)
	}
}

// acks knows the interactions whose first answer is on its way: nothing can be sent through a handle before.
type acks struct {
	mu      sync.Mutex
	flying  map[string]chan struct{}
	waiting map[string]chan struct{} // commands that were not answered yet
}

func newAcks() *acks {
	return &acks{flying: map[string]chan struct{}{}, waiting: map[string]chan struct{}{}}
}

// expect is closed when something was said through a command's handle.
func (a *acks) expect(token string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[token] == nil {
		a.waiting[token] = make(chan struct{})
	}
	return a.waiting[token]
}

// said notes that something was said through a handle.
func (a *acks) said(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.waiting[token]; c != nil {
		close(c)
		delete(a.waiting, token)
	}
}

// begin notes an interaction. Calling done, once or more, lets its handle be used.
func (a *acks) begin(token string) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	landed := a.flying[token]
	if landed == nil {
		landed = make(chan struct{})
		a.flying[token] = landed
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.flying[token] == landed {
			delete(a.flying, token)
			close(landed)
		}
	})
}

// wait blocks until an interaction has had its first answer.
func (a *acks) wait(ctx context.Context, token string) {
	a.mu.Lock()
	landed := a.flying[token]
	a.mu.Unlock()
	if landed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, discordgo.InteractionDeadline+time.Second)
	defer cancel()
	select {
	case <-landed:
	case <-ctx.Done():
	}
}

// clear lets go of the handles whose events were never taken, at the end of Run.
func (a *acks) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for token, landed := range a.flying {
		delete(a.flying, token)
		close(landed)
	}
}

// gone says that a handle does not work (any more).
func gone(err error) bool {
	return says(err, unknownWebhook, invalidToken, unknownInteraction)
}

// through answers an event through its handle. Where that does not work any more, ok is false and nothing was sent.
func (c *Channel) through(ctx context.Context, p channels.Post) (id channels.MessageID, ok bool, err error) {
	self, err := c.known(ctx)
	if err != nil {
		return "", false, err
	}
	command := strings.HasPrefix(p.Handle.Secret, ofCommand)
	token := strings.TrimPrefix(strings.TrimPrefix(p.Handle.Secret, ofCommand), ofButton)
	c.acks.wait(ctx, token)
	defer func() {
		if err == nil {
			c.acks.said(token)
		}
	}()
	hook := "webhooks/" + self.app + "/" + token
	if command {
		var first message
		if err := c.rest.get(ctx, "look at the command's answer", hook+"/messages/@original", &first); err != nil {
			if gone(err) {
				return "", false, nil
			}
			if !says(err, unknownMessage) { // its sender has taken it away
				return "", false, err
			}
		}
		switch {
		case first.Flags&int(discordgo.MessageFlagsLoading) != 0:
			id, err = c.post(ctx, "answer the command", http.MethodPatch, hook+"/messages/@original", p, self)
			if gone(err) {
				return "", false, nil
			}
			return id, true, err
		case first.ID != "" && first.Content == p.Text && len(p.Files) == 0: // this is the second try of what arrived
			return channels.MessageID(first.ID), true, nil
		}
	}
	id, err = c.post(ctx, "answer the event", http.MethodPost, hook, p, self)
	if gone(err) {
		return "", false, nil
	}
	return id, true, err
}
