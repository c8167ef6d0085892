package delivery

import (
	"errors"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

const marked = transport.RepeatMark

// R05: what may have been sent is sent once more with a mark, or dropped, and never blindly. What is behind it is sent all
// the same, unless the answer is given up.
func TestR05_ADoubtIsMarkedOnceOrDropped(t *testing.T) {
	t.Parallel()
	undelivered := "I have an answer but could not deliver it here (run run)."
	for name, c := range map[string]struct {
		lost  int
		rule  workspace.OnUnknown
		want  []string
		parts []string
	}{
		"none":          {0, workspace.MarkUnknown, []string{"one", "two"}, []string{"sent 1", "sent 1"}},
		"mark":          {1, workspace.MarkUnknown, []string{"one", marked + "one", "two"}, []string{"sent 2", "sent 1"}},
		"swallow again": {2, workspace.MarkUnknown, []string{"one", marked + "one", undelivered}, []string{"dead 2", "cancelled 0"}},
		"drop":          {1, workspace.DropUnknown, []string{"one", "two"}, []string{"dead 1", "sent 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(n *memNet) { n.lose = first(c.lost, errCut) }, func(_ *testing.T, w *world) {
				n := answerTo("ana", "1", "one", "two")
				n.OnUnknown = c.rule
				w.say(n)
				w.want("sent", w.wait(time.Minute), c.want...)
				w.want("parts", w.states("1"), c.parts...)
			})
		})
	}
}

// R05: what was refused just now may have been sent before all the same: a marked repeat stays marked until it is sent, and
// is not sent a third time.
func TestR05_ARefusedRepeatStaysMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost int
		want []string
	}{
		"sent":            {1, []string{"one", marked + "one"}},
		"swallowed again": {2, []string{"one", marked + "one", "I have an answer but could not deliver it here (run run)."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sends := 0
			inBubble(t, func(n *memNet) {
				n.lose = first(c.lost, errCut)
				n.send = func(channels.Post) error {
					if sends++; sends > 1 && sends < 5 {
						return flood(time.Minute)
					}
					return nil
				}
			}, func(_ *testing.T, w *world) {
				w.answer("1", "one")
				w.want("sent", w.wait(time.Hour), c.want...)
			})
		})
	}
}

// R05: a network that can be asked is asked, and one that dedupes gets the same token: nothing goes twice, nothing is marked.
func TestR05_ANetworkThatKnowsIsNotSentARepeat(t *testing.T) {
	t.Parallel()
	asked := 0
	answers := func(id channels.MessageID, found, sure bool, err error) func(channels.Post) (channels.MessageID, bool, bool, error) {
		return func(channels.Post) (channels.MessageID, bool, bool, error) { asked++; return id, found, sure, err }
	}
	for _, c := range []struct {
		name  string
		net   func(*memNet)
		want  []string
		parts []string
	}{
		{"surely absent", func(n *memNet) { n.send, n.find = first(1, errors.New("cut")), answers("", false, true, nil) },
			[]string{"one"}, []string{"sent 2"}},
		{"it is there, by its token", func(n *memNet) { n.lose, n.find = first(1, errCut), n.byToken },
			[]string{"one"}, []string{"sent 1"}},
		{"it cannot tell", func(n *memNet) { n.lose, n.find = first(1, errCut), answers("", false, false, nil) },
			[]string{"one", marked + "one"}, []string{"sent 2"}},
		{"it fails to tell", func(n *memNet) { n.lose, n.find = first(1, errCut), answers("", false, false, errors.New("503")) },
			[]string{"one", marked + "one"}, []string{"sent 2"}},
		{"the room is gone", func(n *memNet) {
			n.lose, n.find = first(1, errCut), answers("", false, false, &channels.Error{Class: channels.PeerGone, Err: errors.New("gone")})
		}, []string{"one"}, []string{"dead 1"}},
		{"the same token is the same message", func(n *memNet) { n.traits.Idempotent, n.send = true, first(1, errCut) },
			[]string{"one"}, []string{"sent 2"}},
	} {
		asked = 0
		inBubble(t, c.net, func(_ *testing.T, w *world) {
			w.answer("1", "one")
			w.want(c.name, w.wait(10*time.Minute), c.want...)
			w.want(c.name, w.states("1"), c.parts...)
		})
		if c.name == "it fails to tell" && asked != maxFinds {
			t.Errorf("asked %d times", asked)
		}
	}
}

// R05: a repeat that the network refuses for good stays marked, so that whoever retries it repeats it marked.
func TestR05_ADeadRepeatStaysMarked(t *testing.T) {
	t.Parallel()
	sends := 0
	inBubble(t, func(n *memNet) {
		n.lose = first(1, errCut)
		n.send = func(channels.Post) error {
			if sends++; sends == 2 {
				return &channels.Error{Class: channels.PeerGone, Err: errors.New("gone")}
			}
			return nil
		}
	}, func(t *testing.T, w *world) {
		w.answer("1", "one")
		w.want("sent", w.wait(time.Hour), "one")
		o, err := w.db.OutboundByKey("1")
		if p := o.Parts[0]; err != nil || p.State != workspace.PartDead || p.Doubt != workspace.DoubtMarked {
			t.Errorf("it is %s, %q, %v", p.State, p.Doubt, err)
		}
	})
}

// A question is asked twice rather than never, with its buttons and without a mark; a placeholder carries no answer.
func TestQuestionsAndPlaceholdersAreRepeatedUnmarked(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) { n.traits.Buttons, n.lose = true, first(1, errCut) }, func(_ *testing.T, w *world) {
		n := answerTo("ana", "q", "May I?")
		n.Kind, n.Open, n.OnUnknown = workspace.OutApproval, true, workspace.DropUnknown
		out, _ := w.db.Outbound(n)
		w.Ask(out[0], func(*workspace.Outbound) [][]channels.Action {
			return [][]channels.Action{{{Label: "Once"}, {Label: "Deny"}}}
		})
		w.want("asked", w.wait(0), "May I? [Once] [Deny]", "May I? [Once] [Deny]")
	})
	inBubble(t, func(n *memNet) { n.lose = first(1, errCut) }, func(_ *testing.T, w *world) {
		n := answerTo("ana", "1", "")
		n.Open = true
		out, _ := w.db.Outbound(n)
		w.Open(out[0], nil)
		w.want("shown", w.wait(0), Placeholder, Placeholder)
	})
}

// R05: an answer under way when the gateway is killed goes out once more, marked, and so after each of three crashes; a
// fourth gives it up.
func TestR05_ACrashWhileSendingIsADoubt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(_ *testing.T, w *world) {
		w.net.lose = func(channels.Post) error { w.db.deaf.Store(w.db.epoch); return nil } // killed before it is noted
		w.answer("1", "one")
		w.want("first", w.wait(0), "one")
		for range maxBegins {
			w.crash()
			w.restart()
			w.AfterCrash(time.Now())
			w.Recover(w.db.undelivered())
			w.want("after a crash", w.wait(0), marked+"one")
		}
		w.crash()
		w.restart()
		w.net.lose = nil
		w.Recover(w.db.undelivered())
		w.want("after the last", w.wait(0), "I have an answer but could not deliver it here (run run).")
		w.want("parts", w.states("1"), "dead 4")
	})
}

// What an earlier process was showing of an answer that grows carried no text: it is sent again, or edited.
func TestAPlaceholderOfAnEarlierBootIsTakenUp(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.net.lose = func(channels.Post) error { w.db.deaf.Store(w.db.epoch); return nil }
		n := answerTo("ana", "1", "")
		n.Open = true
		out, _ := w.db.Outbound(n)
		w.Open(out[0], nil)
		w.want("shown", w.wait(0), Placeholder)
		w.crash()
		w.restart()
		w.net.lose = nil
		open := w.Recover(w.db.undelivered())
		if o := open["run"]; len(open) != 1 || o == nil || o.Parts[0].State != workspace.PartReady {
			t.Fatalf("open: %+v", open)
		}
		w.want("by itself", w.wait(time.Minute))
		w.Push(w.db.finish("1", "the answer", store.Span{To: 10}), false, nil)
		w.want("finished", w.wait(0), "the answer")
	})
}

// R01: a network that knows a token again keeps the placeholder that has it, and says that all is well: what people see must become the
// answer all the same.
func TestR01_APlaceholderWithTheAnswersTokenBecomesTheAnswer(t *testing.T) {
	t.Parallel()
	for name, finished := range map[string]bool{"killed while it thinks": false, "killed with the answer ready": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(n *memNet) { n.traits.Idempotent, n.edits = true, true }, func(_ *testing.T, w *world) {
				w.net.lose = func(channels.Post) error { w.db.deaf.Store(w.db.epoch); return nil }
				n := answerTo("ana", "1", "")
				n.Open = true
				out, _ := w.db.Outbound(n)
				w.Open(out[0], nil)
				w.want("shown", w.wait(0), Placeholder)
				end := store.Span{To: len("the answer")}
				if finished {
					w.db.finish("1", "the answer", end)
				}
				w.crash()
				w.restart()
				w.net.lose = nil
				w.Recover(w.db.undelivered())
				if !finished {
					w.Push(w.db.finish("1", "the answer", end), false, nil)
				}
				w.want("people see", w.wait(time.Minute), "1 is now the answer")
				w.want("parts", w.states("1"), "sent 2")
			})
		})
	}
}
