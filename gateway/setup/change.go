package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"parley/configs"
	"parley/configs/edit"
	"parley/configs/guard"
	"parley/configs/source"
	"parley/workspace"
)

// applyWithin bounds what a change waits for beside the parts that settle.
const applyWithin = 30 * time.Second

// Change makes places of the text others, and keeps credentials.
func (s *Setup) Change(ctx context.Context, who Asker, e Edit) (Applied, error) {
	return s.alone(ctx, who, func() (*plan, error) {
		f, err := s.opt.Source.File()
		if err != nil {
			return nil, err
		}
		if e.Base != "" && e.Base != f.Revision {
			return nil, fmt.Errorf("%s: %w", f.Path, source.ErrChanged)
		}
		sets, files, err := s.sort(e, f.Text)
		if err != nil {
			return nil, err
		}
		text, err := edit.Apply(f.Text, sets...)
		if err != nil {
			return nil, err
		}
		return (&plan{before: f, text: text, files: files}).refer()
	})
}

// Write makes the file a text that was shown and changed. Masks in it stay what they stand for.
func (s *Setup) Write(ctx context.Context, who Asker, base string, shown []byte) (Applied, error) {
	return s.alone(ctx, who, func() (*plan, error) {
		p, err := s.whole(shown)
		if err == nil && p.before.Revision != base {
			err = fmt.Errorf("%s: %w", p.before.Path, source.ErrChanged)
		}
		return p, err
	})
}

// alone makes and carries out a plan while nobody else does.
func (s *Setup) alone(ctx context.Context, who Asker, make func() (*plan, error)) (Applied, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return Applied{}, ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	p, err := make()
	if err != nil {
		return Applied{}, err
	}
	ctx, cancel := context.WithTimeout(s.opt.Base, settleWithin+applyWithin) // whoever asked may leave: it is finished
	defer cancel()
	return s.apply(ctx, who, p)
}

// apply carries a plan out. Whatever refuses it leaves the file as it was, and no credential behind.
func (s *Setup) apply(ctx context.Context, who Asker, p *plan) (done Applied, err error) {
	if err := who.May(p.references); err != nil { // before anything that they name is read
		return done, err
	}
	if p.before.Revision != "" && bytes.Equal(p.text, p.before.Text) {
		return Applied{Revision: p.before.Revision}, nil
	}
	pending, err := s.begin(p)
	if err != nil {
		return done, err
	}
	defer func() {
		if second := pending.end(); second != nil {
			s.opt.Log.Error("traces of a configuration change not removed", "err", second)
		}
	}()
	new, err := s.judge(ctx, who, p)
	if err != nil {
		return done, err
	}
	current := s.opt.Source.Current()
	parts := partsOf(p.changed, new)
	fine := s.fine(ctx, current, parts)
	if err := pending.applying(fine); err != nil {
		return done, err
	}
	s.at("pending")
	if err := s.opt.Audit(who.Row(workspace.AuditConfigChanged, map[string]any{"keys": p.changed, "path": p.before.Path})); err != nil {
		return done, err
	}
	s.opt.Hide.Add(new.Secrets()...)
	if err := s.opt.Source.Replace(ctx, p.before.Revision, p.text); err != nil {
		return done, err
	}
	s.at("applied")
	done = Applied{Revision: source.RevisionOf(p.text), Changed: p.changed, Restart: p.restart}
	failed, notes := s.settle(ctx, new, parts, fine)
	if s.opt.Base.Err() != nil { // the gateway stops: the next start judges
		pending.leave = true
		return done, nil
	}
	s.at("judged")
	if done.Notes = notes; failed == nil {
		pending.keep()
		return done, nil
	}
	note, err := s.undo(ctx, who, p, failed)
	if err != nil {
		return Applied{}, err
	}
	done.Notes = append(done.Notes, note)
	return done, nil
}

// judge says whether the text may be put in force, once its credentials lie where it names them.
func (s *Setup) judge(ctx context.Context, who Asker, p *plan) (*configs.Config, error) {
	s.at("kept")
	new, err := s.opt.Source.Check(p.text)
	if err != nil {
		return nil, err
	}
	current := s.opt.Source.Current()
	if err := p.means(current, new); err != nil {
		return nil, err
	}
	if err := who.May(p.guarded); err != nil {
		return nil, err
	}
	known := []*configs.Config{current}
	if was, _ := s.opt.Source.Check(p.before.Text); was != nil { // what is in the file and not in force counts too
		known = append(known, was)
	}
	if err := guard.KeptElsewhere(new, known...); err != nil {
		return nil, err
	}
	if slices.Contains(p.changed, "gateway.listen") {
		if err := canListen(ctx, new.Gateway.Listen); err != nil {
			return nil, &configs.Error{File: p.before.Path, Problems: []configs.Problem{{Path: "gateway.listen", Text: err.Error()}}}
		}
	}
	return new, nil
}

// canListen says whether an address that is to be listened on after the next start can be taken now.
func canListen(ctx context.Context, address string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot be listened on: %w", err)
	}
	return l.Close()
}

// undo puts the former text in force. It is said by an *Undone; where the file is another by now, or the former text cannot be
// taken any more, it stays and the sentence says so.
func (s *Setup) undo(ctx context.Context, who Asker, p *plan, failed *Undone) (string, error) {
	was := p.before.Text
	if p.before.Revision == "" {
		was = nil
	}
	err := s.opt.Source.Replace(ctx, source.RevisionOf(p.text), was)
	switch {
	case errors.Is(err, source.ErrChanged):
		return fmt.Sprintf("%s: %s. The file was changed meanwhile, so it stays as it is.", failed.Part, failed.Why), nil
	case err != nil:
		s.opt.Log.Error("configuration change not undone", "part", failed.Part.String(), "why", failed.Why, "err", err)
		return fmt.Sprintf("%s: %s. The change could not be undone: the former text cannot be used any more.", failed.Part, failed.Why), nil
	}
	s.at("undone")
	s.opt.Log.Warn("configuration change undone", "part", failed.Part.String(), "why", failed.Why, "keys", p.changed)
	what := map[string]any{"keys": p.changed, "part": failed.Part.String(), "why": s.opt.Hide.Redact(failed.Why)}
	if err := s.opt.Audit(who.Row(workspace.AuditConfigUndone, what)); err != nil {
		s.opt.Log.Error("audit row is not kept", "kind", workspace.AuditConfigUndone, "err", err)
	}
	return "", failed
}
