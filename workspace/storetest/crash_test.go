package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

func both(t *testing.T, run func(t *testing.T, p *Place)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); run(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); run(t, Postgres(t)) })
}

func TestR01_WhatWasAcknowledgedIsThereAfterACrash(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p *Place) {
		s := p.Open(t)
		c := NewChat(1)
		queued := accept(t, s, c.Begun(s, "m:1", "one")).Input
		run := accept(t, s, NewChat(2).Begun(s, "m:2", "two"))
		fin := finish(t, s, Answer(run.Begun.Run, "done", run.Input))
		p.Crash(t, s)

		again := p.Open(t)
		if again.Epoch() != s.Epoch()+1 {
			t.Errorf("epoch %d after %d", again.Epoch(), s.Epoch())
		}
		if in := input(t, again, queued.ID); in.State != workspace.InputTaken || in.Text != "one" {
			t.Errorf("acknowledged: %+v", in)
		}
		live, err := again.LiveRuns()
		if err != nil || len(live) != 1 || live[0].Epoch != s.Epoch() {
			t.Fatalf("live: %+v %v", live, err)
		}
		r, err := again.Resume(live[0].ID)
		if err != nil || r.Tries != 2 || r.Epoch != again.Epoch() {
			t.Errorf("resumed: %+v %v", r, err)
		}
		und, err := again.OpenOutbound()
		if err != nil || len(und) != 1 || und[0].Text != "done" || und[0].Parts[0].State != workspace.PartSending {
			t.Fatalf("undelivered: %+v %v", und, err)
		}
		part := und[0].Parts[0]
		if part.Token != fin.Answer.Parts[0].Token {
			t.Errorf("token %s became %s", fin.Answer.Parts[0].Token, part.Token)
		}
		if err := again.MovePart(store.Move{Part: part, To: workspace.PartSent}); !errors.Is(err, workspace.ErrConflict) {
			t.Errorf("a part of an earlier boot was called sent before it was unknown: %v", err)
		}
		for _, to := range []workspace.PartState{workspace.PartUnknown, workspace.PartSent} {
			if err := again.MovePart(store.Move{Part: part, To: to}); err != nil {
				t.Errorf("to %s: %v", to, err)
			}
		}
	})
}

func TestALostAnswerToCommitNeitherLosesNorRepeats(t *testing.T) {
	t.Parallel()
	p := Postgres(t)
	s := p.Open(t)
	c := NewChat(1)
	accept(t, s, c.Message(s, "warm", "up"))
	p.cable.LoseNextCommit()
	got, err := s.Accept(c.Begun(s, "m:1", "one"))
	if err != nil || got[0].Duplicate || got[0].Begun == nil {
		t.Fatalf("committed, and its answer lost: %+v %v", got, err)
	}
	p.cable.LoseNextCommit()
	fin := finish(t, s, Answer(got[0].Begun.Run, "pong", got[0].Input))
	if fin.Answer == nil {
		t.Fatalf("%+v", fin)
	}
	if h, why := s.Health(); h != store.Unwritable && h != store.Well {
		t.Errorf("health %s: %s", h, why)
	}
	entries, err := s.LastEntries(got[0].Begun.Run.SessionID, 10)
	if err != nil || len(entries) != 4 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestUnitsSurviveACutConnection(t *testing.T) {
	t.Parallel()
	p := Postgres(t)
	well := make(chan store.Health, 16)
	s := p.Open(t, func(o *store.Options) { o.OnHealth = func(h store.Health) { well <- h } })
	c := NewChat(1)
	a := accept(t, s, c.Begun(s, "m:1", "one"))
	p.cable.Cut()
	done := make(chan error, 1)
	go func() {
		_, err := s.Finish(Answer(a.Begun.Run, "pong", a.Input)) // in flight: waits
		done <- err
	}()
	if h := <-well; h != store.Unwritable {
		t.Fatalf("health %s", h)
	}
	if _, err := s.Accept(c.Message(s, "m:2", "two")); !errors.Is(err, channels.ErrUnwritable) {
		t.Errorf("accept without a database: %v", err)
	}
	p.cable.Mend()
	if err := <-done; err != nil {
		t.Errorf("what was in flight: %v", err)
	}
	if h := <-well; h != store.Well {
		t.Fatalf("health %s", h)
	}
	accept(t, s, c.Message(s, "m:2", "two"))
}

func TestAProcessThatLostItsDatabaseIsFenced(t *testing.T) {
	t.Parallel()
	p := Postgres(t)
	stale := p.Open(t)
	c := NewChat(1)
	accept(t, stale, c.Message(stale, "m:1", "one"))
	p.cable.Cut()
	next := p.Open(t, func(o *store.Options) { o.Dir, o.Postgres = t.TempDir(), p.direct })
	if next.Epoch() != stale.Epoch()+1 {
		t.Errorf("epoch %d after %d", next.Epoch(), stale.Epoch())
	}
	p.cable.Mend()
	for range 2 {
		if _, err := stale.Accept(c.Message(stale, "m:2", "two")); !errors.Is(err, channels.ErrUnwritable) {
			t.Errorf("a stale process took a message: %v", err)
		}
	}
	accept(t, next, c.Message(next, "m:2", "two"))
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	// the lock is free, and yet the stale one must not come back
	if _, err := stale.Accept(c.Message(stale, "m:3", "three")); !errors.Is(err, channels.ErrUnwritable) {
		t.Errorf("a stale process came back: %v", err)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	p := SQLite(t)
	p.Open(t)
	if _, err := store.Open(t.Context(), store.Options{Dir: p.Dir(), Now: time.Now}); err == nil {
		t.Error("two processes in one data directory")
	}
	if testing.Short() {
		return
	}
	pg := Postgres(t)
	pg.Open(t)
	if _, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Postgres: pg.dsn, Now: time.Now}); err == nil {
		t.Error("two processes in one PostgreSQL database")
	}
}

func TestR02_OneTurnAtATimeUnderCompetition(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, p *Place) {
		s := p.Open(t)
		c := NewChat(1)
		var wg sync.WaitGroup
		begun := make(chan *store.Begun, 64)
		for i := range 32 {
			wg.Go(func() {
				got, err := s.Accept(c.Begun(s, fmt.Sprintf("m:%d", i), "x"))
				if err != nil {
					t.Error(err)
					return
				}
				if got[0].Begun != nil {
					begun <- got[0].Begun
				}
			})
		}
		wg.Wait()
		if len(begun) != 1 {
			t.Fatalf("%d runs hold one session", len(begun))
		}
		q, err := s.Queued()
		if err != nil || len(q) != 31 {
			t.Fatalf("%d queued, %v", len(q), err)
		}
		for i := 1; i < len(q); i++ {
			if q[i].Seq <= q[i-1].Seq {
				t.Errorf("order: %d behind %d", q[i].Seq, q[i-1].Seq)
			}
		}
	})
}
