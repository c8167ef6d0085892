package channeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"parley/channels"
)

// memAdapter is a correct adapter of memNet, unless bad names one of its faults: then it is a saboteur.
type memAdapter struct {
	net   *memNet
	bad   string
	d     channels.Deps
	count atomic.Int64
}

func (a *memAdapter) is(bad string) bool { return a.bad == bad }

// Run implements channels.Channel.
func (a *memAdapter) Run(ctx context.Context, in channels.Intake) (err error) {
	defer func() {
		if v := recover(); v != nil && !a.is("lets panics out") {
			err = fmt.Errorf("receive: %v", v)
		} else if v != nil {
			panic(v)
		}
	}()
	if a.is("leaves a goroutine") {
		go func() { <-context.WithoutCancel(ctx).Done() }()
	}
	for {
		err := a.session(ctx, in)
		switch {
		case ctx.Err() != nil && a.is("returns the context's error"):
			return ctx.Err()
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRevoked):
			hint := "make a new token"
			if a.is("fatal without a hint") {
				hint = ""
			}
			in.Report(channels.Status{State: channels.Failed, Hint: hint, Err: err})
			if a.is("goes on without an account") {
				<-ctx.Done()
				return nil
			}
			return &channels.Error{Class: channels.Fatal, Err: err}
		case a.is("gives up after a cut") && errors.Is(err, errCut):
			<-ctx.Done()
			return nil
		case a.is("gives up when nobody listens") && errors.Is(err, errDown), a.is("fatal when nobody listens") && errors.Is(err, errDown):
			return &channels.Error{Class: channels.Fatal, Err: err}
		case a.is("tells its token"):
			err = fmt.Errorf("connect with %s: %w", memSecret, err)
			a.d.Log.Error("connection", "err", err)
		}
		in.Report(channels.Status{State: channels.Connecting, Cause: err.Error(), Err: err})
		channels.Sleep(ctx, time.Millisecond)
	}
}

func (a *memAdapter) session(ctx context.Context, in channels.Intake) error {
	conn, err := a.net.connect(ctx)
	if err != nil {
		return err
	}
	in.Report(channels.Status{State: channels.Ready})
	for {
		pollCtx := ctx
		if a.is("deaf to cancel") {
			pollCtx = context.WithoutCancel(ctx)
		}
		batch, err := a.net.poll(pollCtx, conn)
		if err != nil {
			return err
		}
		if a.is("acknowledges first") {
			a.net.ack(batch)
		}
		err = a.offer(ctx, in, batch)
		if err != nil && !a.is("acknowledges what failed") {
			return err
		}
		if !a.is("never acknowledges") {
			a.net.ack(batch)
		}
	}
}

// offer gives a batch to the gateway until it is taken.
func (a *memAdapter) offer(ctx context.Context, in channels.Intake, batch []*memEvent) error {
	var out []channels.Inbound
	for _, ev := range batch {
		if c, ok := a.convert(ev); ok {
			out = append(out, c)
		}
	}
	if a.is("turns the order") {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	if len(out) == 0 {
		return nil
	}
	for {
		err := in.Receive(ctx, out...)
		if err == nil || ctx.Err() != nil && !a.is("waits for the gateway for ever") {
			return err
		}
		if a.is("drops what is refused") {
			return nil
		}
		if a.is("waits for the gateway for ever") {
			<-context.WithoutCancel(ctx).Done()
		}
		channels.Sleep(ctx, time.Millisecond)
	}
}

// convert normalises an event.
func (a *memAdapter) convert(ev *memEvent) (channels.Inbound, bool) {
	if ev.own && !a.is("hears itself") {
		return channels.Inbound{}, false
	}
	to := a.net.Address(ev.Place)
	if a.is("forgets the group") && to.Kind == channels.Group && to.Thread == "" {
		to.Kind, to.Peer = channels.DM, "ana"
	}
	if a.is("forgets the thread") {
		to.Thread = ""
	}
	in := channels.Inbound{Key: fmt.Sprintf("m:%s:%s", to.Peer, ev.id), Kind: channels.KindMessage, To: to, ID: ev.id,
		From: channels.Sender{User: a.net.User(ev.Who), Name: string(ev.Who)}, Time: ev.at, Text: ev.Text, Mentioned: ev.Mention, Album: ev.album}
	switch a.bad {
	case "key of the message id only":
		in.Key = string("m:" + ev.id)
	case "key in a form of its own":
		in.Key = fmt.Sprintf("m:%s:%s:%s", to.Peer, ev.id, in.From.User)
	case "key of the delivery":
		in.Key += fmt.Sprint("#", time.Now().UnixNano())
	case "nameless sender":
		in.From.User = ""
	case "mention left in the text":
		if ev.Mention {
			in.Text = "@bot " + in.Text
		}
	case "mention by substring":
		in.Mentioned = ev.Mention || strings.Contains(ev.Text, "@parley")
	case "one album each":
		in.Album = ""
	}
	return a.special(ev, in)
}

// special turns in into what the event is, if it is not a plain message.
func (a *memAdapter) special(ev *memEvent, in channels.Inbound) (channels.Inbound, bool) {
	kinds := map[Deed]channels.Kind{EditIt: channels.KindEdit, DeleteIt: channels.KindDelete, ReactTo: channels.KindReaction,
		PressOn: channels.KindButton, MoveRoom: channels.KindMoved, Garbage: channels.KindUnparsed}
	if k, ok := kinds[ev.Do]; ok {
		in.Kind, in.Target, in.Key = k, ev.Target, fmt.Sprintf("%s:%s:%s", k, in.To.Peer, ev.id)
	}
	switch ev.Do {
	case EditIt:
		if a.is("edits are new messages") {
			in.Kind = channels.KindMessage
		}
	case DeleteIt:
		if a.is("deletions have no target") {
			in.Target = ""
		}
	case ReactTo:
		if a.is("reactions are empty") {
			in.Text = ""
		}
	case PressOn:
		if a.is("buttons give their label") {
			in.Text = "Yes"
		}
	case Command:
		in.Command = !ev.Mention
		if a.is("commands are texts") {
			in.Command = false
		}
		if a.is("takes other bots' commands") {
			in.Command = true
		}
	case MoveRoom:
		in.To.Peer, in.Text = "g1", "g2"
		if a.is("moves nowhere") {
			in.Text = ""
		}
	case Garbage:
		in.Data = []byte("\x00garbage")
		return in, !a.is("swallows what it cannot read")
	}
	if ev.ReplyTo != "" {
		in.ReplyTo = ev.ReplyTo
		if q := ev.quote; q != nil && !a.is("quotes nothing") {
			in.Quote = &channels.Quote{From: channels.Sender{User: a.net.User(q.who)}, Text: q.text, Own: q.who == ourselves}
		}
	}
	for _, f := range ev.Files {
		in.Attachments = append(in.Attachments, channels.Attachment{ID: string(f.Data), Kind: f.Kind, Name: f.Name, MIME: f.MIME, Size: int64(len(f.Data))})
	}
	return in, true
}

// Send implements channels.Channel.
func (a *memAdapter) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	if a.is("cannot send twice at once") {
		return a.sendAlone(ctx)
	}
	if a.is("sends without its context") {
		ctx = context.WithoutCancel(ctx)
	}
	text, files, err := p.Text, []File(nil), error(nil)
	for _, f := range p.Files {
		data, err := a.read(ctx, f)
		if err != nil {
			return "", &channels.Error{Class: channels.BadMessage, Err: err}
		}
		name := f.Name
		if a.is("tells the reference of files") {
			name = f.Ref
		}
		files = append(files, File{Name: name, MIME: f.MIME, Data: data})
	}
	switch {
	case a.is("cuts long texts") && len([]rune(text)) > memMax:
		text = string([]rune(text)[:memMax])
	case a.is("changes the text"):
		text = strings.ToUpper(text)
	case a.is("sends to the group's root"):
		p.To.Thread = ""
	case a.is("replies to nothing"):
		p.ReplyTo = ""
	case a.is("drops buttons"):
		p.Actions = nil
	case a.is("sends without its token"):
		p.Token = fmt.Sprint(time.Now().UnixNano())
	}
	id, err := a.net.post(ctx, p, text, files)
	if errors.Is(err, errMarkup) && !a.is("has no plain words") {
		id, err = a.net.post(ctx, p, p.Plain, files)
	}
	if err != nil && (a.is("tries again by itself") || errors.Is(err, errServer) && a.is("tries again after server errors")) {
		id, err = a.net.post(ctx, p, text, files)
	}
	return id, a.classify(err)
}

// sendAlone waits for a second send and then refuses both.
func (a *memAdapter) sendAlone(ctx context.Context) (channels.MessageID, error) {
	if a.count.Add(1) < 2 {
		a.net.await(ctx, func() bool { return a.count.Load() >= 2 })
	}
	a.net.update(func() {})
	return "", &channels.Error{Class: channels.Retry, Err: errors.New("another send is running")}
}

func (a *memAdapter) classify(err error) error {
	if err == nil {
		return nil
	}
	e := &channels.Error{Class: channels.Unknown, Err: err}
	var flood errFlood
	switch {
	case errors.As(err, &flood):
		e.Class, e.After = channels.Retry, time.Duration(flood)
		if a.is("forgets how long to wait") {
			e.After = 0
		}
	case errors.Is(err, errDown):
		e.Class = channels.Retry
	case errors.Is(err, errRevoked):
		e.Class = channels.Fatal
	case errors.Is(err, errBlocked):
		e.Class = channels.PeerGone
	case errors.Is(err, errMoved):
		e.Class, e.Moved = channels.PeerGone, "g2"
	case errors.Is(err, errLong), errors.Is(err, errMarkup), errors.Is(err, errMissing):
		e.Class = channels.BadMessage
	}
	switch {
	case a.is("every failure is retry"):
		e.Class = channels.Retry
	case a.is("every failure is unknown"):
		e.Class = channels.Unknown
	case a.is("every failure is fatal"):
		e.Class = channels.Fatal
	case a.is("names its token in errors"):
		e.Err = fmt.Errorf("POST /%s/send: %w", memSecret, err)
	}
	return e
}

func (a *memAdapter) Account() channels.AccountID { return a.net.Account() }

// read reads a file to send.
func (a *memAdapter) read(ctx context.Context, f channels.File) ([]byte, error) {
	r, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	if !a.is("leaves files open") {
		defer r.Close()
	}
	return io.ReadAll(r)
}

func (a *memAdapter) Traits() channels.Traits {
	t := channels.Traits{Idempotent: a.net.idempotent, Unit: channels.Runes, MaxUnits: memMax, Dialect: channels.Plain, Threads: true, Buttons: true,
		EditEvery: time.Second, TypingEvery: time.Second, MaxFile: 1 << 20}
	if a.is("has no pace") {
		t.EditEvery = 0
	}
	if a.is("never repeats typing") {
		t.TypingEvery = 0
	}
	return t
}

func (a *memAdapter) Edit(_ context.Context, id channels.MessageID, p channels.Post) error {
	err := a.net.change(p.To, id, func(s *memSent) bool {
		same := s.Text == p.Text
		if !a.is("edits nothing") {
			s.Text = p.Text
		}
		s.Previews = a.is("previews edited links")
		return !same || !a.is("fails on the same text")
	})
	if a.is("fails on the same text") {
		return errors.New("message is not modified")
	}
	if a.is("edits what is gone") {
		return nil
	}
	return a.classify(err)
}

func (a *memAdapter) Delete(_ context.Context, to channels.Address, id channels.MessageID) error {
	err := a.net.change(to, id, func(*memSent) bool { return a.is("deletes nothing") })
	if errors.Is(err, errMissing) && !a.is("fails on what is gone") {
		return nil
	}
	return err
}

func (a *memAdapter) React(_ context.Context, to channels.Address, id channels.MessageID, emoji string) error {
	a.net.update(func() {
		place, _ := a.net.place(to)
		if emoji != "" || !a.is("keeps its reactions") {
			a.net.react[string(place)+string(id)] = emoji
		}
	})
	return nil
}

func (a *memAdapter) ShowTyping(_ context.Context, to channels.Address) error {
	a.net.update(func() {
		place, _ := a.net.place(to)
		if a.is("types elsewhere") {
			a.net.typing[OtherDM]++
		}
		a.net.typing[place]++
	})
	return nil
}

func (a *memAdapter) Open(_ context.Context, at channels.Attachment) (io.ReadCloser, error) {
	if a.is("fetches addresses") && strings.HasPrefix(at.ID, "http") {
		resp, err := a.d.HTTP.Get(at.ID)
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	}
	if !a.net.issued(at.ID) && !a.is("opens anything") {
		return nil, errMissing
	}
	data := []byte(at.ID)
	if a.is("opens half of it") {
		data = data[:len(data)/2]
	}
	if int64(len(data)) > at.Size && !a.is("opens more than announced") {
		return nil, channels.ErrTooLarge
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (a *memAdapter) PublishMenu(_ context.Context, items []channels.MenuItem) error {
	a.net.update(func() {
		a.net.menu = items
		if a.is("shows one command") {
			a.net.menu = items[:1]
		}
	})
	return nil
}

func (a *memAdapter) Stream(ctx context.Context, p channels.Post) (channels.Stream, error) {
	id, err := a.Send(ctx, p)
	return &memStream{a, p.To, id}, err
}

type memStream struct {
	a  *memAdapter
	to channels.Address
	id channels.MessageID
}

func (s *memStream) ID() channels.MessageID { return s.id }
func (s *memStream) Append(_ context.Context, text string) error {
	return s.a.net.change(s.to, s.id, func(m *memSent) bool {
		if s.a.is("rewrites its stream") {
			m.Text = ""
		}
		m.Text += text
		return true
	})
}
func (s *memStream) Close(ctx context.Context, rest string) error { return s.Append(ctx, rest) }

func (a *memAdapter) Find(_ context.Context, p channels.Post, _ time.Time) (id channels.MessageID, found, sure bool, err error) {
	a.net.mu.Lock()
	defer a.net.mu.Unlock()
	for _, s := range a.net.sent {
		if s.token == p.Token || a.is("finds everything") {
			return s.ID, true, true, nil
		}
	}
	return "", false, true, nil
}

func (a *memAdapter) History(_ context.Context, to channels.Address, n int) ([]channels.Inbound, error) {
	a.net.mu.Lock()
	events := append([]*memEvent(nil), a.net.events...)
	a.net.mu.Unlock()
	var all []channels.Inbound
	for _, ev := range events {
		if in, ok := a.convert(ev); ok && in.To == to {
			all = append(all, in)
		}
	}
	if a.is("forgets the root") {
		return all[len(all)-n:], nil
	}
	return append(all[:1], all[len(all)-n:]...), nil
}

func (a *memAdapter) Login(_ context.Context, _ channels.LoginHow, show func(channels.LoginStep)) error {
	if !a.is("logs in silently") {
		show(channels.LoginStep{QR: "2@qr", Expires: time.Now().Add(time.Minute)})
	}
	a.net.update(func() { a.net.linked = true })
	return nil
}

func (a *memAdapter) Logout(context.Context) error { return nil }

func (a *memAdapter) Check(context.Context) []channels.Finding {
	a.net.mu.Lock()
	defer a.net.mu.Unlock()
	if err := a.net.health(); err != nil && !a.is("finds nothing wrong") || a.is("finds everything wrong") {
		return []channels.Finding{{What: "the account is refused", Hint: "make a new token"}}
	}
	return []channels.Finding{{OK: true, What: "account"}}
}
