package stage_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/channeltest/stage"
)

// fault is that of a network with one call, "get".
type fault struct {
	rule stage.Rule
	says string
}

func (f fault) Rule() stage.Rule { return f.rule }

// fake is that network; acts counts what it did.
type fake struct {
	*stage.Host
	*stage.Faults[fault]
	acts   atomic.Int64
	called chan struct{}
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{called: make(chan struct{}, 100)}
	f.Host = stage.New("", f.get, nil)
	f.Faults = stage.NewFaults[fault](1, f.Done())
	if err := f.Up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	hit := f.Take("get")
	f.called <- struct{}{}
	if !hit.Before(r, func(g fault) { _, _ = io.WriteString(w, g.says) }) {
		return
	}
	f.acts.Add(1)
	hit.After(w, []byte("hello"))
	hello(w, r)
}

func TestFaultsSpoilCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    stage.Do
		says  string
		acts  int64
		fails bool
	}{
		"reply":      {do: stage.Reply, says: "no"},
		"cut before": {do: stage.CutBefore, fails: true},
		"cut after":  {do: stage.CutAfter, acts: 1, fails: true},
		"cut middle": {do: stage.CutMiddle, says: "he", acts: 1, fails: true},
		"delay":      {do: stage.Delay, says: "hello", acts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.Add(fault{stage.Rule{Call: "put", Do: stage.CutBefore}, ""})
			f.Add(fault{stage.Rule{Call: "get", Do: c.do, Times: 1, After: time.Millisecond}, "no"})
			cl := client(t)
			// A get that is cut before any answer would be sent again by net/http on a connection that was used before.
			if got, err := ask(t, cl, f.Host); got != c.says || (err != nil) != c.fails || f.acts.Load() != c.acts {
				t.Errorf("spoiled: %q, %v after %d acts", got, err, f.acts.Load())
			}
			if got, err := ask(t, cl, f.Host); got != "hello" || err != nil || f.acts.Load() != c.acts+1 {
				t.Errorf("the next: %q, %v", got, err)
			}
		})
	}
}

func TestWhatHangsEndsWhenFaultsAreCleared(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]stage.Do{"hang": stage.Hang, "delay": stage.Delay} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.Add(fault{rule: stage.Rule{Do: do, After: time.Hour}})
			answer := make(chan error, 1)
			go func() {
				_, err := ask(t, client(t), f.Host)
				answer <- err
			}()
			<-f.called
			f.Clear()
			if err := <-answer; (err != nil) != (do == stage.Hang) {
				t.Errorf("cleared: %v", err)
			}
		})
	}
}

func TestChancesAreDrawnFromTheSeed(t *testing.T) {
	t.Parallel()
	draw := func() (hits string) {
		f := stage.NewFaults[fault](7, nil)
		f.Add(fault{rule: stage.Rule{Chance: 0.5}})
		for range 100 {
			if f.Take("get") != nil {
				hits += "x"
			} else {
				hits += "."
			}
		}
		return hits
	}
	if one, two := draw(), draw(); one != two {
		t.Errorf("the same seed gave\n%s and\n%s", one, two)
	}
}
