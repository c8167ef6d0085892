// From a batch of events to what is stored of it.

package intake

import (
	"context"
	"runtime/debug"

	"parley/channels"
	"parley/gateway/transport"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// arrival is one inbound event on its way through.
type arrival struct {
	store.Arrival
	channel  *transport.Channel // it came through
	in       channels.Inbound
	key      string
	mayBegin bool // it can start a turn at once if its session is idle
	reserved bool
	age      int // of what was remembered of people when the sender was looked up
	heard    int // number of the last line of others that the turn quotes
	stale    bool
	got      store.Accepted
}

// receive is the one way in, for channels and for what comes from inside.
func (r *Receiver) receive(ctx context.Context, ch *transport.Channel, batch ...channels.Inbound) ([]*arrival, error) {
	if r.Overloaded() {
		r.shed.Add(int64(len(batch)))
		return nil, channels.ErrBusy
	}
	var list, all []*arrival
	for _, in := range batch {
		got, err := r.judged(ch, in)
		if err != nil {
			return nil, err
		}
		list, all = append(list, got...), append(all, got...)
		if len(got) == 1 && r.Commands.BeforeRouting(got[0].Input) { // where the next message goes depends on it
			if err := r.take(ctx, list); err != nil {
				return nil, err
			}
			list = nil
		}
	}
	return all, r.take(ctx, list)
}

// take accepts what was judged together.
func (r *Receiver) take(ctx context.Context, list []*arrival) error {
	oneCode(list)
	r.reserve(list)
	return r.accept(ctx, list)
}

// judged is judge, with a panic in it noted beside the event: one event never holds up the rest.
func (r *Receiver) judged(ch *transport.Channel, in channels.Inbound) (list []*arrival, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("judging an event panicked", "channel", ch.Name, "key", in.Key, "panic", p, "stack", string(debug.Stack()))
			list, err = []*arrival{r.noted(ch, in, "it could not be judged")}, nil
		}
	}()
	return r.judge(ch, redacted(r.Hide, in))
}

// noted is an event that is kept as a mere fact, without its text.
func (r *Receiver) noted(ch *transport.Channel, in channels.Inbound, why string) *arrival {
	a := r.draft(ch, in, routes.Verdict{})
	a.Input.State, a.Input.Reason, a.Input.Mode = workspace.InputNoted, why, workspace.ModeNote
	return a
}

// redacted takes secrets out of all that people wrote or named: what is journalled is what models and transcripts get.
func redacted(hide *workspace.Redactor, in channels.Inbound) channels.Inbound {
	in.Text, in.Title, in.From.Name = hide.Redact(in.Text), hide.Redact(in.Title), hide.Redact(in.From.Name)
	in.Data = hide.JSON(in.Data)
	in.Attachments = attached(hide, in.Attachments)
	if in.Quote != nil {
		q := *in.Quote // the adapter's own
		q.Text, q.From.Name, q.Attachments = hide.Redact(q.Text), hide.Redact(q.From.Name), attached(hide, q.Attachments)
		in.Quote = &q
	}
	return in
}

func attached(hide *workspace.Redactor, list []channels.Attachment) []channels.Attachment {
	if len(list) == 0 {
		return list
	}
	out := make([]channels.Attachment, len(list))
	for i, a := range list {
		a.Name = hide.Redact(a.Name)
		out[i] = a
	}
	return out
}
