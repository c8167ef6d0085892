package delivery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// R05: a network that is away for longer than a dozen tries take loses no answer.
func TestR05_OutageOfTheNetworkIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	d := &Outbox{Options: Options{Now: time.Now}}
	young := &workspace.Outbound{Created: time.Now().Add(-time.Hour)}
	if d.enough(young, 100) {
		t.Error("an answer of an hour is given up")
	}
	if old := (&workspace.Outbound{Created: time.Now().Add(-25 * time.Hour)}); d.enough(old, maxTries-1) || !d.enough(old, maxTries) {
		t.Error("an answer of 25 hours is not given up after the last try")
	}
}

// R05: what a network asks for is kept, to the second; for a minute after it the room keeps the network's rate, and another
// room none of it.
func TestR05_RetryAfterHoldsTheRoomAndPacesIt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) {
		n.traits.SendEvery = time.Second
		n.send = first(1, flood(30*time.Second))
	}, func(_ *testing.T, w *world) {
		w.answer("1", "one")
		w.answer("2", "two")
		w.want("at first", w.wait(29*time.Second))
		w.say(answerTo("ben", "b", "to ben"))
		w.want("beside it", w.wait(0), "to ben")
		w.want("after what it asked for", w.wait(1100*time.Millisecond), "one")
		w.want("a second later", w.wait(time.Second), "two")
		w.want("state", w.states("1"), "sent 2")
		w.wait(2 * time.Minute)
		w.answer("3", "three")
		w.answer("4", "four")
		w.want("when it is forgotten", w.wait(0), "three", "four")
	})
}

// R05: refusals without a time are tried again, with growing waits, however long; a part that was surely not sent carries
// no mark.
func TestR05_RefusalsAreTriedAgainWithGrowingWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) { n.send = first(20, flood(0)) }, func(_ *testing.T, w *world) {
		w.answer("1", "one")
		w.want("at once", w.wait(0))
		w.want("after a second or so", w.wait(1300*time.Millisecond))
		w.want("state", w.states("1"), "ready 2")
		w.want("after two hours", w.wait(2*time.Hour), "one")
		w.want("state", w.states("1"), "sent 21")
	})
}

// R05: what the network will never take is given up with what is behind it, and the room hears of it once.
func TestR05_UnsendableAnswerIsSaidInOneSentence(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) {
		n.send = func(p channels.Post) error {
			if p.Plain == "one" {
				return errGone
			}
			return nil
		}
	}, func(_ *testing.T, w *world) {
		w.answer("1", "one", "two")
		w.want("told", w.wait(0), "I have an answer but could not deliver it here (run run).")
		w.want("state", w.states("1"), "dead 1", "cancelled 0")
		if o, err := w.db.OutboundByKey("1"); err != nil || !strings.Contains(o.Parts[0].Error, "no such words here") {
			w.t.Errorf("the dead part says %q, %v", o.Parts[0].Error, err)
		}
	})
}

// A room's answers go in the order of the journal, whenever they are queued, and their parts in theirs.
func TestAnswersKeepTheOrderOfTheJournal(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(_ *testing.T, w *world) {
		var list []workspace.Outbound
		for i := range 4 {
			out, err := w.db.Outbound(answerTo("ana", fmt.Sprint(i), fmt.Sprint(i, "a "), fmt.Sprint(i, "b")))
			if err != nil {
				w.t.Fatal(err)
			}
			list = append(list, out...)
		}
		slices.Reverse(list[1:])
		w.Reserve("ana") // not known yet: nothing is held
		w.Know("ana", channels.Address{Network: "mem", Kind: channels.DM, Peer: "ana"})
		if !w.Reserve("ana") || w.Reserve("ana") {
			w.t.Error("a room is held twice, or not at all")
		}
		w.PushAll(list)
		w.want("while it is held", w.wait(0))
		w.Release("ana")
		w.want("sent", w.wait(0), "0a", "0b", "1a", "1b", "2a", "2b", "3a", "3b")
	})
}

// A reservation has its first part stored as being sent, and Push sends it without a further commit.
func TestAReservedRoomSendsAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(_ *testing.T, w *world) {
		w.Know("ana", channels.Address{Network: "mem", Kind: channels.DM, Peer: "ana"})
		n := answerTo("ana", "1", "one")
		if n.Sending = w.Reserve("ana"); !n.Sending {
			w.t.Fatal("an idle room cannot be held")
		}
		out, _ := w.db.Outbound(n)
		w.Push(out[0], true, nil)
		w.want("sent", w.wait(0), "one")
		w.want("state", w.states("1"), "sent 1")
	})
}

// An adapter that panics costs the one message a doubt, and the room goes on.
func TestPanicInAnAdapterIsADoubt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) {
		fail := first(1, errCut)
		n.send = func(p channels.Post) error {
			if fail(p) != nil {
				panic("adapter")
			}
			return nil
		}
	}, func(_ *testing.T, w *world) {
		w.answer("1", "one")
		w.answer("2", "two")
		w.want("sent", w.wait(0), transport.RepeatMark+"one", "two")
	})
}

// A streamed answer takes the place of its placeholder by an edit; what it has no text for is deleted, and a message that
// somebody has deleted is sent again as one of its own.
func TestAStreamedAnswerReplacesItsPlaceholder(t *testing.T) {
	t.Parallel()
	open := func(w *world) *Job {
		n := answerTo("ana", "1", "")
		n.Open = true
		out, _ := w.db.Outbound(n)
		j := w.Open(out[0], nil)
		if j.Remote() != "" {
			w.t.Error("its id is known before it is sent")
		}
		w.want("placeholder", w.wait(0), Placeholder)
		if <-j.Done(); j.Remote() != "1" {
			w.t.Errorf("its id is %q", j.Remote())
		}
		return j
	}
	for name, c := range map[string]struct {
		edit func(channels.Post) error
		text string
		want []string
	}{
		"edited":              {nil, "the answer", []string{"1 is now the answer"}},
		"edited again":        {first(3, flood(time.Second)), "the answer", []string{"1 is now the answer"}},
		"surplus":             {nil, "", []string{"1 is gone"}},
		"deleted by somebody": {first(1, errGone), "the answer", []string{"the answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(n *memNet) { n.edits, n.edit = true, c.edit }, func(_ *testing.T, w *world) {
				j := open(w)
				w.Push(w.db.finish("1", c.text, store.Span{To: len(c.text)}), false, j)
				w.want("in the end", w.wait(time.Minute), c.want...)
			})
		})
	}
}

// What a panicking network function leaves does not end the gateway, and Drain waits for it.
func TestDrainWaitsForLastCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, w *world) {
		ended := false
		w.Go(func() { panic("reaction") })
		w.Go(func() {
			<-time.After(time.Second)
			ended = true
		})
		if w.Drain(t.Context(), time.Minute); !ended {
			t.Error("a last call was not waited for")
		}
	})
}

// R08: at the end a room that the network holds back for longer is not waited for, one that can send in time is, and a send
// that has begun comes to its answer. What is left is ready at the next start.
func TestR08_DrainSendsWhatItCanInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) {
		short, long := first(1, flood(3*time.Second)), first(1, flood(3*time.Hour))
		n.send = func(p channels.Post) error {
			switch {
			case strings.HasPrefix(p.Plain, "short"):
				return short(p)
			case strings.HasPrefix(p.Plain, "long"):
				return long(p)
			case strings.HasPrefix(p.Plain, "slow"):
				<-time.After(10 * time.Second)
			}
			return nil
		}
	}, func(t *testing.T, w *world) {
		for _, s := range []string{"short", "long", "slow"} {
			w.say(answerTo(workspace.RoomID(s), s, s, " more"))
		}
		w.want("at first", w.wait(time.Second))
		began := time.Now()
		w.Drain(t.Context(), 5*time.Second)
		if took := time.Since(began); took != 9*time.Second {
			t.Errorf("the end took %v: until the send that had begun was answered", took)
		}
		w.want("sent", w.net.taken(), "short", "more", "slow")
		w.want("short", w.states("short"), "sent 2", "sent 1")
		w.want("long", w.states("long"), "ready 1", "ready 0")
		w.want("slow", w.states("slow"), "sent 1", "ready 0")
		w.say(answerTo("ana", "late", "late"))
		w.want("after the end", w.wait(time.Hour))
	})
}

// R05: a wait of hours that a network asked for outlives a restart, unless the clock was set back.
func TestR05_AWaitOutlivesARestart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) { n.send = first(1, flood(3*time.Hour)) }, func(_ *testing.T, w *world) {
		w.answer("1", "one")
		w.wait(time.Minute)
		w.end(time.Second)
		w.restart()
		w.Recover(w.db.undelivered())
		w.want("too early", w.wait(2*time.Hour))
		w.end(time.Second)
		w.restart()
		left := w.db.undelivered()
		left[0].Parts[0].NextAt = time.Now().Add(48 * time.Hour)
		w.Recover(left)
		w.want("no network asks for that", w.wait(0), "one")
	})
}

// Each of many rooms sends by itself, and a goroutine stands only for those that do.
func TestRoomsSendSideBySide(t *testing.T) {
	t.Parallel()
	inBubble(t, func(n *memNet) {
		n.send = func(channels.Post) error { <-time.After(time.Second); return nil }
	}, func(t *testing.T, w *world) {
		for i := range 100 {
			w.say(answerTo(workspace.RoomID(fmt.Sprint(i)), fmt.Sprint(i), "x"))
		}
		if got := len(w.wait(1100 * time.Millisecond)); got != 100 {
			t.Errorf("%d of 100 rooms have sent in a second", got)
		}
		synctest.Wait()
		select {
		case <-w.idle():
		default:
			t.Error("a goroutine is left")
		}
	})
}

// A part as long as the network allows can still go once more with the mark before it.
func TestR05_MarkedRepeatOfAFullPartFits(t *testing.T) {
	t.Parallel()
	const limit = 4000
	inBubble(t, func(n *memNet) {
		n.traits.Unit, n.traits.MaxUnits = channels.Runes, limit
		n.lose = first(1, errCut)
		n.send = func(p channels.Post) error {
			if len([]rune(p.Plain)) > limit {
				return &channels.Error{Class: channels.BadMessage, Err: errors.New("too long")}
			}
			return nil
		}
	}, func(t *testing.T, w *world) {
		n := store.NewOutbound{Key: "1", RoomID: "ana", Kind: workspace.OutAnswer, Text: strings.Repeat("long ", 2000)}
		n.Spans = Cut(n.Text, w.ch.Traits)
		w.say(n)
		got := w.wait(0)
		if len(got) < 3 || !strings.HasPrefix(got[1], transport.RepeatMark) || len(got[1]) < limit/2 {
			t.Errorf("%d messages, the repeat is %.60q of %d", len(got), got[1], len(got[1]))
		}
	})
}

// An answer in more parts than a room takes goes as a file behind its first part; where it cannot be kept, in parts.
func TestLongAnswerGoesAsAFile(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word ", 1000)
	traits := channels.Traits{Unit: channels.Runes, MaxUnits: 1000, MaxParts: 3, MaxFile: 1 << 20}
	full := errors.New("disk full")
	d := &Outbox{Options: Options{Blobs: blobs{}}}
	if got, err := d.CutOrAttach(text, traits); err != nil || len(got) != 2 || got[0].Blob != "" || got[1].Blob != "ref of 5000" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := (&Outbox{Options: Options{Blobs: blobs{full}}}).CutOrAttach(text, traits); !errors.Is(err, full) || len(got) < 5 {
		t.Errorf("%d parts, %v", len(got), err)
	}
	traits.MaxFile = 0
	if got, err := d.CutOrAttach(text, traits); err != nil || len(got) < 5 {
		t.Errorf("%d parts where no file goes, %v", len(got), err)
	}
}

// The answer to an event goes through its handle while that holds, to its sender alone where others read along.
func TestAnswerGoesThroughTheHandleOfItsEvent(t *testing.T) {
	t.Parallel()
	var posts []channels.Post
	inBubble(t, func(n *memNet) {
		n.traits.Handles = true
		n.send = func(p channels.Post) error { posts = append(posts, p); return nil }
	}, func(t *testing.T, w *world) {
		w.Know("crew", channels.Address{Network: "mem", Kind: channels.Group, Peer: "crew"})
		w.db.handle["event"] = channels.ReplyHandle{Secret: "s3", Expires: time.Now().Add(15 * time.Minute)}.Pack()
		reply := func(in workspace.InputID, what string) channels.Post {
			w.say(NoticeTo(in, what, "crew", workspace.OutReply, "x"))
			w.wait(0)
			return posts[len(posts)-1]
		}
		if p := reply("event", "reply"); p.Handle.Secret != "s3" || !p.Private {
			t.Errorf("%+v", p)
		}
		if !w.Private(workspace.Input{ID: "event", RoomID: "crew"}) || w.Private(workspace.Input{ID: "other", RoomID: "crew"}) {
			t.Error("whose answer is private is not known")
		}
		if p := reply("other", "reply"); p.Handle.Secret != "" || p.Private {
			t.Errorf("%+v", p)
		}
		w.wait(time.Hour)
		if p := reply("event", "refused"); p.Handle.Secret != "" || p.Private {
			t.Errorf("after its time %+v", p)
		}
	})
}

// Answers to rooms whose channel was removed wait in their order, in the middle of one as well, and go out once, when it is
// there again.
func TestAnswersWaitForAChannelThatIsRemovedAndAdded(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, w *world) {
		cs := transport.NewChannels(transport.Options{Log: w.Log, Now: time.Now, Build: func(configs.Channel) (channels.Channel, error) { return w.net.channel(), nil }})
		configured := func(list ...configs.Channel) {
			t.Helper()
			ch, err := cs.Prepare(list)
			if err != nil {
				t.Fatal(err)
			}
			cs.Apply(ch)
			for _, c := range cs.All() {
				c.Report(channels.Status{State: channels.Ready})
			}
			w.Wake()
		}
		w.Channels = cs
		net := configs.Channel{Name: "net", Type: "mem"}
		configured(net)
		w.net.lose = func(channels.Post) error { // the first part takes the channel away
			w.net.lose = nil
			configured()
			return nil
		}
		w.answer("1", "one", "more")
		w.answer("2", "two")
		w.want("before it is removed", w.wait(time.Hour), "one")
		w.answer("3", "three")
		w.want("while it is away", w.wait(time.Hour))
		w.want("state", w.states("1"), "sent 1", "ready 0")
		configured(net)
		w.want("when it is there again", w.wait(time.Second), "more", "two", "three")
		configured()
		w.answer("4", "four")
		w.want("away again", w.wait(time.Hour))
		w.restart()
		if o, err := w.db.OutboundByKey("4"); err != nil {
			t.Fatal(err)
		} else {
			w.Push(o, false, nil)
		}
		w.want("after a start with it", w.wait(time.Second), "four")
	})
}
