package webchat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/channels"
)

// maxKept is how many posts of a person are kept for pages that come later, in this process only.
const maxKept = 50

// posts are what a person was told beside transcripts, oldest first.
type posts struct{ list []postFrame }

// Send implements channels.Channel: a post is sent once a page says that it shows it.
func (c *Channel) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	f, err := c.frame(p, p.Token)
	if err != nil {
		return "", err
	}
	if err := c.show(ctx, p.To, f); err != nil {
		return "", err
	}
	return channels.MessageID(f.ID), nil
}

// Edit implements channels.Editor.
func (c *Channel) Edit(ctx context.Context, id channels.MessageID, p channels.Post) error {
	if !c.keeps(p.To, id) {
		return &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf("edit %s: nothing is shown under this id", id)}
	}
	f, err := c.frame(p, string(id))
	if err != nil {
		return err
	}
	return c.show(ctx, p.To, f)
}

// Delete implements channels.Deleter.
func (c *Channel) Delete(ctx context.Context, to channels.Address, id channels.MessageID) error {
	if !c.keeps(to, id) {
		return nil
	}
	return c.show(ctx, to, postFrame{Type: "post", ID: string(id), Session: string(to.Peer), Removed: true})
}

// ShowTyping implements channels.Typer.
func (c *Channel) ShowTyping(_ context.Context, to channels.Address) error {
	data, err := json.Marshal(typingFrame{"typing", string(to.Peer)})
	if err != nil {
		return err
	}
	for _, l := range c.readers(to) {
		select {
		case l.out <- data:
		default: // it has more to read than it can
		}
	}
	return nil
}

// Await blocks until a page of the address's person is open, or Run or ctx ends: what is sent before is surely not seen.
func (c *Channel) Await(ctx context.Context, to channels.Address) error {
	for {
		c.mu.Lock()
		came, stopped := c.came, c.ctx == nil
		c.mu.Unlock()
		if len(c.readers(to)) > 0 {
			return nil
		}
		if stopped {
			return errStopped
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-came:
		}
	}
}

// frame is a post as pages get it.
func (c *Channel) frame(p channels.Post, id string) (postFrame, error) {
	switch err := c.opt.Desk.Takes(p.To); {
	case errors.Is(err, ErrShut):
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ctx != nil {
			c.fatal(err)
		}
		return postFrame{}, &channels.Error{Class: channels.Fatal, Err: err}
	case errors.Is(err, ErrGone):
		return postFrame{}, &channels.Error{Class: channels.PeerGone, Err: err}
	case err != nil:
		return postFrame{}, &channels.Error{Class: channels.Retry, Err: err}
	}
	f := postFrame{Type: "post", ID: id, Session: string(p.To.Peer), Text: p.Text, Actions: p.Actions, ReplyTo: string(p.ReplyTo)}
	for _, file := range p.Files {
		ref, err := c.opt.Desk.Offer(Person{ID: string(p.To.Account)}, file)
		if err != nil {
			return postFrame{}, &channels.Error{Class: channels.BadMessage, Err: err}
		}
		f.Files = append(f.Files, fileRef{Ref: ref, Name: file.Name, MIME: file.MIME, Size: file.Size})
	}
	return f, nil
}

// readers are the open lines of the address's person.
func (c *Channel) readers(to channels.Address) []*line {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*line
	for l := range c.lines {
		if l.open && l.who.ID == string(to.Account) && l.ctx.Err() == nil {
			list = append(list, l)
		}
	}
	return list
}

// show hands a post to every page of the person and waits until one says that it shows it. Pages know a post by its id, so
// that showing it again is not a second one.
func (c *Channel) show(ctx context.Context, to channels.Address, f postFrame) error {
	answers := make(chan frame, maxLines)
	var asked []*line
	for _, l := range c.readers(to) {
		if l.ask(f.ID, answers) {
			asked = append(asked, l)
		}
	}
	defer func() {
		for _, l := range asked {
			l.unask(f.ID, answers)
		}
	}()
	if len(asked) == 0 {
		return &channels.Error{Class: channels.Retry, Err: errors.New("no page is open")}
	}
	c.keep(to, f)
	for _, l := range asked {
		if err := l.put(f); err != nil { // it has ended: its silence is counted below
			c.opt.Log.Debug("page closed before a post", "err", err)
		}
	}
	return c.outcome(ctx, asked, answers)
}

// outcome is the first page's word that it shows the post; without any, what the last one said.
func (c *Channel) outcome(ctx context.Context, asked []*line, answers <-chan frame) error {
	late := time.NewTimer(c.opt.AckWithin)
	defer late.Stop()
	unknown := &channels.Error{Class: channels.Unknown, Err: errors.New("no page has said that it shows the post")}
	refusal := unknown
	for range asked {
		select {
		case <-ctx.Done():
			return &channels.Error{Class: channels.Unknown, Err: ctx.Err()}
		case <-late.C:
			return unknown
		case f := <-answers:
			if f.Problem == "" {
				return nil
			}
			if e := f.refusal(); e.Class != channels.Unknown && refusal == unknown {
				refusal = e
			}
		}
	}
	return refusal
}

// refusal is why a page does not show a post.
func (f frame) refusal() *channels.Error {
	err := fmt.Errorf("the page says %.40q", f.Problem)
	switch {
	case f.Problem == "gone":
		return &channels.Error{Class: channels.PeerGone, Err: err}
	case f.Problem == "busy" && f.Wait >= 0 && f.Wait < 3600:
		return &channels.Error{Class: channels.Retry, After: time.Duration(f.Wait * float64(time.Second)), Err: err}
	}
	return &channels.Error{Class: channels.Unknown, Err: err}
}

// left is the answer of a page that went before it gave one.
const left = "left"

// ask begins to wait for a page's word on a post.
func (l *line) ask(id string, answers chan<- frame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	if l.asked[id] != nil { // an edit of what is being shown: the newer one counts
		l.asked[id] <- frame{Problem: left}
	}
	l.asked[id] = answers
	return true
}

func (l *line) unask(id string, answers chan<- frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked[id] == answers {
		delete(l.asked, id)
	}
}

// got is a page's word on a post.
func (l *line) got(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answers := l.asked[f.ID]; answers != nil {
		delete(l.asked, f.ID)
		answers <- f // it holds one for each line
	}
}

// forsake answers for a page that has gone.
func (l *line) forsake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, answers := range l.asked {
		delete(l.asked, id)
		answers <- frame{Problem: left}
	}
}

// keep remembers a post for pages that come later; a removed one is forgotten.
func (c *Channel) keep(to channels.Address, f postFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.posts[string(to.Account)]
	if p == nil {
		p = &posts{}
		c.posts[string(to.Account)] = p
	}
	i := slices.IndexFunc(p.list, func(old postFrame) bool { return old.ID == f.ID })
	switch {
	case f.Removed && i >= 0:
		p.list = slices.Delete(p.list, i, i+1)
	case f.Removed:
	case i >= 0:
		p.list[i] = f
	default:
		p.list = append(p.list, f)
		p.list = p.list[max(0, len(p.list)-maxKept):]
	}
}

func (c *Channel) keeps(to channels.Address, id channels.MessageID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.posts[string(to.Account)]
	return p != nil && slices.ContainsFunc(p.list, func(f postFrame) bool { return f.ID == string(id) })
}

// kept are the posts that a page which comes now has missed.
func (c *Channel) kept(person string) []postFrame {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.posts[person]; p != nil {
		return slices.Clone(p.list)
	}
	return nil
}
