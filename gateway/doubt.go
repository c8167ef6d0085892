package gateway

import (
	"context"
	"errors"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

const (
	placeholder = "…"                      // carries no answer text, so that an orphan is never a second answer
	markedOnce  = "sent once more, marked" // Part.Error of the one resend that a doubt allows
	repeatMark  = "(maybe a repeat) "
)

// resolve brings a part out of unknown: a network that dedupes gets the same token again, one that can be asked is
// asked, a known message is edited; else it is sent once more with a mark, or dropped, as the operator chose.
func (d *deliver) resolve(ctx context.Context, r *room, line *line, o *workspace.Outbound, p *workspace.Part) bool {
	if p.RemoteID != "" { // it was live: its message is known, and an edit can be repeated
		return d.found(ctx, r, line, o, p, p.RemoteID)
	}
	if line.traits.Idempotent || o.State == workspace.OutOpen {
		return d.again(p, errors.New("same token"))
	}
	if finder, ok := channels.As[channels.Finder](line.channel); ok {
		post, err := d.post(line, r, o, p)
		if err != nil {
			return d.dead(r, o, p, err)
		}
		id, found, sure, err := finder.Find(ctx, post, o.Created)
		switch {
		case err != nil && ctx.Err() == nil:
			line.suspect(err)
			return !channels.Sleep(ctx, backoff(1))
		case found:
			return d.settle(p, store.Move{To: workspace.PartSent, Remote: id})
		case sure:
			return d.again(p, errors.New("surely absent"))
		}
	}
	if o.OnUnknown == workspace.DropUnknown {
		return d.settle(p, store.Move{To: workspace.PartDead, Error: "may have been sent; dropped as configured"})
	}
	if p.Error == markedOnce {
		return d.dead(r, o, p, errors.New("twice without an answer from the network"))
	}
	d.settle(p, store.Move{To: workspace.PartReady, Error: markedOnce})
	return false
}

func (d *deliver) found(ctx context.Context, r *room, line *line, o *workspace.Outbound, p *workspace.Part, id channels.MessageID) bool {
	p.RemoteID, p.State = id, workspace.PartLive
	return d.edit(ctx, r, line, o, p)
}

// edit gives a live message its final text. Edits can be repeated, so a doubt is no doubt.
func (d *deliver) edit(ctx context.Context, r *room, line *line, o *workspace.Outbound, p *workspace.Part) bool {
	if o.State == workspace.OutOpen {
		return true // its text is not final yet
	}
	editor, ok := channels.As[channels.Editor](line.channel)
	if !ok {
		return d.settle(p, store.Move{To: workspace.PartSent})
	}
	for try := 1; ctx.Err() == nil; try++ {
		if p.From == p.To && p.Blob == "" {
			return d.surplus(ctx, r, line, p)
		}
		post, err := d.post(line, r, o, p)
		if err == nil {
			if !d.rest(ctx, r, line, p, p.N) {
				return true
			}
			_, err = d.call(ctx, r, func(ctx context.Context) (channels.MessageID, error) { return "", editor.Edit(ctx, p.RemoteID, post) })
		}
		var e *channels.Error
		switch {
		case err == nil:
			return d.settle(p, store.Move{To: workspace.PartSent})
		case errors.As(err, &e) && (e.Class == channels.BadMessage || e.Class == channels.PeerGone):
			return d.resend(r, o, p, e)
		case try >= maxTries:
			return d.dead(r, o, p, err)
		}
		if e != nil && e.After > 0 {
			d.mu.Lock()
			r.until, r.pace = d.now().Add(e.After), d.now().Add(e.After+paceFor)
			d.mu.Unlock()
			continue
		}
		p.NextAt = d.now().Add(backoff(try))
	}
	return true
}

// resend is for a live message that cannot be edited any more (deleted by somebody, too old): its text goes out as
// a message of its own. The placeholder carried no answer, so this is no repeat.
func (d *deliver) resend(r *room, o *workspace.Outbound, p *workspace.Part, e *channels.Error) bool {
	if e.Class == channels.PeerGone && e.Moved == "" || p.Error == replaced {
		return d.dead(r, o, p, e)
	}
	text := o.Text[min(p.From, len(o.Text)):min(p.To, len(o.Text))]
	out, err := d.store.Outbound(store.NewOutbound{Key: o.Key + ":again", RoomID: o.RoomID, RunID: o.RunID, Kind: o.Kind, Text: text,
		Spans: []store.Span{{To: len(text)}}})
	if err != nil {
		return d.lost(p, err)
	}
	d.settle(p, store.Move{To: workspace.PartSent, Error: replaced})
	d.PushAll(out)
	return true
}

const replaced = "could not be edited; sent anew"

// surplus removes a live message that the final text does not need.
func (d *deliver) surplus(ctx context.Context, r *room, line *line, p *workspace.Part) bool {
	if deleter, ok := channels.As[channels.Deleter](line.channel); ok {
		_, err := d.call(ctx, r, func(ctx context.Context) (channels.MessageID, error) {
			return "", deleter.Delete(ctx, d.where(r), p.RemoteID)
		})
		if err != nil {
			d.log.Warn("surplus message stays", "room", d.where(r).String(), "err", err)
		}
	}
	return d.settle(p, store.Move{To: workspace.PartCancelled})
}
