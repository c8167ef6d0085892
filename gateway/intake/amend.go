// Edits and deletes: they follow the message that they are about.

package intake

import (
	"errors"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// deletions are a deletion of a message, and of the copies that other agents have of it.
func (r *Receiver) deletions(a *arrival, by workspace.Person) ([]*arrival, error) {
	list := []*arrival{a}
	for _, id := range r.Snapshot().Order {
		c := *a
		r.copied(&c, id)
		switch _, err := r.Store.InputByKey(c.Input.Source, c.Input.Account, c.Input.TargetKey); {
		case errors.Is(err, workspace.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		}
		if err := r.deletion(&c, by); err != nil {
			return nil, err
		}
		list = append(list, &c)
	}
	return list, r.deletion(a, by)
}

// deletion lets a message that was taken back follow its writer's message: what is not begun is cancelled, what is
// under way is told. Networks often do not say who deleted; where they say that it was another person, it is noted.
func (r *Receiver) deletion(a *arrival, by workspace.Person) error {
	target, err := r.Store.InputByKey(a.Input.Source, a.Input.Account, a.Input.TargetKey)
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
	a.Input.Person, a.Input.Role, a.Input.Sender = target.Person, target.Role, target.Sender
	a.Input.Agent, a.Input.Binding = target.Agent, target.Binding
	a.Key, a.key, a.Input.State = key, target.Binding.Key, workspace.InputQueued
	return nil
}

// amended carries an edit or delete to where its message now is.
func (r *Receiver) amended(in workspace.Input, am *store.Amended) {
	key := am.Target.Binding.Key
	if am.Was == workspace.InputContext && in.State == workspace.InputNoted {
		r.Transcripts.Amend(key, am.Target.Seq, in.Text)
	}
	switch {
	case am.Was == workspace.InputQueued && in.Kind == channels.KindDelete:
		r.Lanes.Remove(key, am.Target.Seq)
	case am.Was == workspace.InputQueued:
		r.Lanes.Replace(key, am.Target.Seq, in.Text)
	case am.Was == workspace.InputTaken && in.State == workspace.InputQueued:
		r.Lanes.Steer(key, in)
	case in.State == workspace.InputQueued:
		r.Lanes.Offer(in.Binding.Key, in)
	}
}

// amendment is what a turn is told that has taken the message.
func amendment(in channels.Inbound) string {
	if in.Kind == channels.KindDelete {
		return "(I deleted my message.)"
	}
	return "(I edited my message. It now says:) " + in.Text
}
