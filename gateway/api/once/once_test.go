package once

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers keeps them in memory, as the store does: the first stays.
type answers struct {
	mu   sync.Mutex
	kept map[string]control.Answered
	soon int
	err  error // of keeping
}

func (a *answers) Of(call control.Call, key string) (control.Answered, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one, ok := a.kept[string(call.Actor.Person)+key]; ok {
		return one, nil
	}
	return control.Answered{}, workspace.ErrNotFound
}

func (a *answers) Keep(call control.Call, key string, one control.Answered) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := string(call.Actor.Person) + key
	if _, ok := a.kept[name]; ok {
		return workspace.ErrConflict
	}
	if a.kept == nil {
		a.kept = map[string]control.Answered{}
	}
	if a.err == nil {
		a.kept[name] = one
	}
	return a.err
}

func (a *answers) KeepSoon(_ context.Context, call control.Call, key string, one control.Answered) {
	a.mu.Lock()
	a.soon++
	a.mu.Unlock()
	_ = a.Keep(call, key, one) // it is tried
}

// desk does writes, and counts them.
type desk struct {
	keys *Keys
	mu   sync.Mutex
	done int
	err  error // of the write itself
}

func (d *desk) serve(w http.ResponseWriter, r *http.Request) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done++
	if d.err != nil {
		return d.err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	wire.Reply(w, http.StatusCreated, map[string]string{"said": string(body)})
	return nil
}

// ask sends a write of a person and returns its status and answer; 0: it failed.
func (d *desk) ask(who workspace.PersonID, key, path, body string, k Keeping) (*httptest.ResponseRecorder, error) {
	rec := httptest.NewRecorder()
	err := d.keys.Do(rec, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)),
		Write{Call: control.Call{Actor: workspace.Actor{Person: who}}, Key: key, Keeping: k, Serve: d.serve})
	return rec, err
}

func newDesk(a *answers) *desk { return &desk{keys: New(a, slog.New(slog.DiscardHandler))} }

func TestOneKeyIsOneWriteAndOneAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(&answers{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if rec, err := d.ask("ana", "k", "/a", "x", Kept); err != nil || rec.Code != http.StatusCreated || !strings.Contains(rec.Body.String(), `"said":"x"`) {
				t.Errorf("%d %s, %v", rec.Code, rec.Body, err)
			}
		})
	}
	all.Wait()
	if d.done != 1 {
		t.Errorf("done %d times", d.done)
	}
	if rec, err := d.ask("ana", "k", "/a", "x", Kept); err != nil || rec.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v, %v", rec.Header(), err)
	}
	for what, q := range map[string][2]string{"another body": {"/a", "y"}, "another path": {"/b", "x"}, "another query": {"/a?x=y", "x"}} {
		var p *wire.Problem
		if _, err := d.ask("ana", "k", q[0], q[1], Kept); !errors.As(err, &p) || p.Status != http.StatusConflict {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := d.ask("ben", "k", "/a", "x", Kept); err != nil || d.done != 2 {
		t.Errorf("somebody else's key: %v, done %d times", err, d.done)
	}
}

// A refusal is an answer; what another try may mend is none, and neither is what could not be kept.
func TestRefusalsAreKeptAndFailuresAreNot(t *testing.T) {
	t.Parallel()
	a := &answers{}
	d := newDesk(a)
	d.err = wire.Fault(http.StatusNotFound, "not_found", "no")
	for range 2 {
		if rec, err := d.ask("ana", "gone", "/a", "", Kept); err != nil || rec.Code != http.StatusNotFound || rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %v, %v", rec.Code, rec.Header(), err)
		}
	}
	if d.done != 1 {
		t.Errorf("a refusal was done %d times", d.done)
	}
	for _, err := range []error{errors.New("broken"), wire.Busy("no room"), wire.RetryAfter(http.StatusTooManyRequests, "rate_limited", "slow", 1)} {
		d.done, d.err = 0, err
		for range 2 {
			if _, err := d.ask("ana", "fails", "/a", "", Kept); err == nil {
				t.Error("it did not fail")
			}
		}
		if d.done != 2 {
			t.Errorf("%v: done %d times", err, d.done)
		}
	}
	d.err, a.err = nil, errors.New("the disk is full")
	if rec, err := d.ask("ana", "unkept", "/a", "", Kept); err == nil || rec.Body.Len() > 0 {
		t.Errorf("an answer that is not kept was given: %s", rec.Body)
	}
	if rec, err := d.ask("ana", "soon", "/a", "", Soon); err != nil || rec.Code != http.StatusCreated || a.soon != 1 {
		t.Errorf("while the store takes nothing: %d, %v", rec.Code, err)
	}
}

// A write that looks after repeats itself is done each time, and its key is bound all the same.
func TestKeyOfAWriteThatIsNotKeptIsBound(t *testing.T) {
	t.Parallel()
	d := newDesk(&answers{})
	for range 2 {
		if _, err := d.ask("ana", "k", "/a", "x", Not); err != nil {
			t.Error(err)
		}
	}
	if d.done != 2 {
		t.Errorf("done %d times", d.done)
	}
	if _, err := d.ask("ana", "k", "/b", "x", Kept); wire.ProblemOf(err).Status != http.StatusConflict {
		t.Errorf("the key was free: %v", err)
	}
}
