package all_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/controltest"
	"parley/gateway/control/conversation"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/workspace"
)

// world is a gateway's nouns over a store.
type world struct{ *controltest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{controltest.New(t)}
}

// do is each verb of docs/rights.md that control holds.
func (w *world) do(t *testing.T, verb string) func(control.Call) error {
	ctx := t.Context()
	switch verb {
	case "help", "commands":
		return func(c control.Call) error { return w.Text(ctx, c, verb, "text") }
	case "status": // by HTTP it needs session.read as well
		return func(c control.Call) error {
			_, err := conversation.SayStatus.Call(ctx, w.Conversations, c, struct{}{})
			return err
		}
	case "message":
		return func(c control.Call) error {
			_, err := w.Conversations.Submit(ctx, conversation.Submission{Actor: c.Actor, Text: "hello"})
			return err
		}
	case "run.read":
		return func(c control.Call) error { _, err := w.Runs.Read(ctx, c, control.RunWord(w.RunID)); return err }
	case "logs":
		return func(c control.Call) error { _, err := w.Operator.Log(ctx, c); return err }
	case "describe":
		return func(c control.Call) error { return w.Operator.Describe(ctx, c) }
	}
	if do := w.doSession(t, verb); do != nil {
		return do
	}
	return w.doValue(t, verb)
}

// doValue is do for the verbs that are values: all of the name, with what they are told left out as far as it may be.
func (w *world) doValue(t *testing.T, verb string) (do func(control.Call) error) {
	for _, v := range all.Verbs() {
		if name, _ := v.Right(); name != verb {
			continue
		}
		before := do
		do = func(c control.Call) error {
			if before != nil {
				if err := before(c); err != nil {
					return err
				}
			}
			_, err := v.Run(t.Context(), w.List(), c, func(in any) error {
				for _, f := range v.Spec().Fields {
					text := "ana"
					if f.Choices != nil {
						text = f.Choices[0]
					}
					switch f.Type {
					case reflect.TypeFor[control.SessionWord]():
						text = w.Local(t, c)
					case reflect.TypeFor[control.RunWord]():
						text = string(w.RunID)
					case reflect.TypeFor[int64]():
						text = "1"
					}
					if f.Needed {
						if err := f.Set(in, text); err != nil {
							return err
						}
					}
				}
				return nil
			})
			return err
		}
	}
	return do
}

// doSession is do for the verbs of sessions.
func (w *world) doSession(t *testing.T, verb string) func(control.Call) error {
	ctx, n := t.Context(), 0
	switch verb {
	case "session.new":
		return func(c control.Call) error {
			n++
			_, err := session.New.Call(ctx, w.Sessions, c, session.NewIn{Name: fmt.Sprint("s", n)})
			return err
		}
	case "session.switch":
		return func(c control.Call) error {
			_, err := session.Switch.Call(ctx, w.Sessions, c, session.SwitchIn{To: "main"})
			return err
		}
	}
	return nil
}

// rows are the cells of docs/rights.md: verb to role to cell.
func rows(t *testing.T) map[string]map[workspace.Role]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[workspace.Role]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out[cells[0]] = map[workspace.Role]string{workspace.Owner: cells[2], workspace.Member: cells[3], workspace.Guest: cells[4], workspace.Nobody: cells[5]}
	}
	return out
}

// T10: every verb, asked for by every role in direct chats and in groups, does what docs/rights.md says.
func TestT10_EveryVerbKeepsToTheTableOfRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := 0
	for verb, cells := range rows(t) {
		if slices.Contains([]string{"verb", "---", "alive", "sign-in", "deliver"}, verb) {
			continue // not asked of control: anybody may reach them
		}
		seen++
		for role, cell := range cells {
			for _, kind := range []channels.PeerKind{channels.DM, channels.Group, channels.Room, ""} {
				allowed := cell != "no"
				if group := kind == channels.Group || kind == channels.Room; group && strings.HasSuffix(cell, "direct") {
					allowed = false
				}
				c := w.Call("ana", role, kind)
				if got := w.May(c, verb); got != allowed {
					t.Errorf("%s by %q in %q: may is %v, the table says %q", verb, role, kind, got, cell)
				}
				f := w.do(t, verb)
				if f == nil {
					continue
				}
				if kind != channels.DM && kind != "" && verb == "message" {
					continue // a message of the API has no group
				}
				err := f(c)
				if denied := errors.Is(err, workspace.ErrDenied); denied == allowed {
					t.Errorf("%s by %q in %q: %v, the table says %q", verb, role, kind, err, cell)
				}
				if err != nil {
					if _, ok := workspace.Sentence(err); !ok {
						t.Errorf("%s by %q in %q: %v has no sentence for the chat", verb, role, kind, err)
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d verbs were read", seen)
	}
}

// What a cell calls "own" is what the person asked for; other people's is not there for them.
func TestOwnMeansOnlyOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ben, ana, boss := w.Call("ben", workspace.Member, channels.DM), w.Call("ana", workspace.Member, channels.DM), w.Call("boss", workspace.Owner, channels.DM)
	if _, err := w.Runs.Read(ctx, ben, control.RunWord(w.RunID)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("ben reads ana's run: %v", err)
	}
	if _, err := w.Runs.Read(ctx, ben, control.RunWord(w.Input.ID)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("ben reads ana's run by its input: %v", err)
	}
	for _, c := range []control.Call{ana, boss} {
		if v, err := w.Runs.Read(ctx, c, control.RunWord(w.RunID)); err != nil || v.Run.ID != w.RunID {
			t.Errorf("%s reads ana's run: %v", c.Actor.Person, err)
		}
	}
	if v, err := run.Why.Call(ctx, w.Runs, ben, struct{}{}); err != nil || v.Run != nil {
		t.Errorf("ben is told why about %+v, %v", v.Run, err)
	}
	w.Running.Waiting = []workspace.Input{{Person: "ana", Text: "secret of ana"}, {Person: "ben", Text: "ben's"}}
	if v, err := conversation.ShowQueue.Call(ctx, w.Conversations, ben, struct{}{}); err != nil || !slices.Equal(v.Waiting, []string{"ben's"}) {
		t.Errorf("ben sees %q waiting, %v", v.Waiting, err)
	}
	if st, err := conversation.SayStatus.Call(ctx, w.Conversations, ben, struct{}{}); err != nil || len(st.Channels) != 0 {
		t.Errorf("ben sees channels %+v, %v", st.Channels, err)
	}
	got, err := run.StopTurn.Call(ctx, w.Runs, ben, struct{}{})
	if err != nil || got.Run != "" || len(w.Running.Cancelled) != 0 {
		t.Errorf("ben stopped %+v, %v", got, err)
	}
	if got, err = run.StopTurn.Call(ctx, w.Runs, boss, struct{}{}); err != nil || got.Run != w.RunID || len(w.Running.Cancelled) != 1 {
		t.Errorf("the owner stopped %+v, %v", got, err)
	}
}
