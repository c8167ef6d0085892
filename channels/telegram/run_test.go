package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
)

// running starts Run inside the bubble and returns how to end it.
func running(t *testing.T, c *Channel, j *journal) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, j) }()
	return func() error {
		cancel()
		return <-done
	}
}

// pass lets the bubble's clock run.
func pass(d time.Duration) { <-time.After(d) }

func TestR01_OffsetMovesOnlyAfterTheJournalHasTheBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		j.before = func() {
			if s.confirmed() != 0 {
				t.Error("an update was confirmed before it was taken")
			}
		}
		s.push(textUpdate(1, "a"), textUpdate(2, "b"))
		c, _ := s.channel(t)
		stop := running(t, c, j)
		synctest.Wait()
		if got := j.texts(); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("taken %q", got)
		}
		if s.confirmed() != 2 {
			t.Fatalf("confirmed %d updates, want 2", s.confirmed())
		}
		if err := stop(); err != nil {
			t.Fatalf("Run: %v", err)
		}
	})
}

func TestR07_RefusedBatchIsOfferedAgainAndNotConfirmed(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{channels.ErrBusy, channels.ErrUnwritable} {
		synctest.Test(t, func(t *testing.T) {
			s, j := newScript(), newJournal()
			j.refuse = func(offer int) error {
				if offer <= 4 {
					return refusal
				}
				return nil
			}
			s.push(textUpdate(1, "a"))
			c, _ := s.channel(t)
			stop := running(t, c, j)
			synctest.Wait()
			if s.confirmed() != 0 || len(j.texts()) != 0 {
				t.Fatal("confirmed or taken while refused")
			}
			if st, ok := j.seen(channels.Deaf); !ok || st.Hint == "" {
				t.Error("the operator was not told that nothing is taken")
			}
			pass(10 * time.Second) // the bubble's clock
			synctest.Wait()
			if got := j.texts(); !slices.Equal(got, []string{"a"}) || s.confirmed() != 1 || j.offers != 5 {
				t.Fatalf("taken %q, confirmed %d, offers %d", got, s.confirmed(), j.offers)
			}
			if last := j.last(); last.State != channels.Ready {
				t.Errorf("state is %s after the journal took the batch", last.State)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestPollAsksForWhatIsReadAndWithoutOffsetFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		s.push(textUpdate(1, "a"))
		c, _ := s.channel(t)
		stop := running(t, c, j)
		synctest.Wait()
		polls := s.made("getUpdates")
		if len(polls) < 2 {
			t.Fatalf("%d polls", len(polls))
		}
		if polls[0].Has("offset") || polls[0].Get("timeout") != "0" || polls[0].Get("limit") != "100" || polls[0].Get("allowed_updates") != allowedUpdates {
			t.Errorf("first poll: %v", polls[0])
		}
		if last := polls[len(polls)-1]; last.Get("offset") != "2" || last.Get("timeout") != "50" {
			t.Errorf("later poll: %v", last)
		}
		if n := len(s.made("getMe")) + len(s.made("deleteWebhook")) + len(s.made("getWebhookInfo")); n != 1 {
			t.Errorf("%d calls beside polling, want getMe alone", n)
		}
		if c.Account() != "4242" {
			t.Errorf("account %q", c.Account())
		}
		_ = stop()
	})
}

func TestWrongTokenIsFatal(t *testing.T) {
	t.Parallel()
	for _, r := range []reply{refuse(401, "Unauthorized"), refuse(404, "Not Found"), {404, "404 page not found"}} {
		synctest.Test(t, func(t *testing.T) {
			s, j := newScript(), newJournal()
			s.on("getMe", r)
			c, _ := s.channel(t)
			err := c.Run(t.Context(), j)
			if channels.ClassOf(err) != channels.Fatal || strings.Contains(err.Error(), testToken) {
				t.Fatalf("Run: %v", err)
			}
			if st, ok := j.seen(channels.Failed); !ok || st.Hint == "" {
				t.Error("fatal state not reported")
			}
		})
	}
}

func TestRevokedTokenEndsPolling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		s.on("getUpdates", refuse(401, "Unauthorized"))
		c, _ := s.channel(t)
		if err := c.Run(t.Context(), j); channels.ClassOf(err) != channels.Fatal {
			t.Fatalf("Run: %v", err)
		}
	})
}

// A token that is revoked while a poll is held is noticed by the first send, not fifty seconds later. A refusal that is
// not about the token costs one poll and no more.
func TestRefusedSendWakesThePoll(t *testing.T) {
	t.Parallel()
	for _, revoked := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, j := newScript(), newJournal()
			c, _ := s.channel(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx, j) }()
			<-time.After(time.Second) // a poll is held
			s.on("sendMessage", refuse(401, "Unauthorized"))
			if revoked {
				s.on("getUpdates", refuse(401, "Unauthorized"))
			}
			began, polls := time.Now(), len(s.made("getUpdates"))
			if _, err := c.Send(t.Context(), channels.Post{To: channels.Address{Peer: "7"}, Text: "x", Plain: "x"}); channels.ClassOf(err) != channels.Fatal {
				t.Fatalf("send: %v", err)
			}
			synctest.Wait()
			if revoked {
				if err := <-ended; channels.ClassOf(err) != channels.Fatal || time.Since(began) > time.Second {
					t.Errorf("Run ended after %v: %v", time.Since(began), err)
				}
			} else {
				<-time.After(time.Second)
				if n := len(s.made("getUpdates")) - polls; n != 2 {
					t.Errorf("%d polls, want one at once and one that is held", n)
				}
				s.push(textUpdate(1, "hello"))
				synctest.Wait()
				if got := j.texts(); len(got) != 1 {
					t.Errorf("after that %q was taken", got)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			cancel()
		})
	}
}

func TestSecondPollerIsNamedAndPollingGoesOnSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		s.on("getUpdates", refuse(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"))
		c, _ := s.channel(t)
		stop := running(t, c, j)
		pass(5 * time.Minute)
		synctest.Wait()
		st, ok := j.seen(channels.Needs)
		if !ok || !strings.Contains(st.Hint, "Another program uses this token") {
			t.Fatalf("status %+v", st)
		}
		if n := len(s.made("getUpdates")); n < 8 || n > 30 {
			t.Errorf("%d polls in five minutes", n)
		}
		if len(s.made("deleteWebhook")) != 0 {
			t.Error("a second poller is not a webhook")
		}
		s.mu.Lock()
		delete(s.answer, "getUpdates")
		s.mu.Unlock()
		s.push(textUpdate(1, "back"))
		pass(time.Minute)
		synctest.Wait()
		if !slices.Equal(j.texts(), []string{"back"}) {
			t.Errorf("taken %q", j.texts())
		}
		_ = stop()
	})
}

func TestWebhookIsRemovedAndItsUpdatesAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		s.on("getUpdates", refuse(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"))
		s.mu.Lock()
		s.answer["deleteWebhook"] = func(f url.Values) reply {
			if f.Get("drop_pending_updates") == "true" {
				t.Error("pending updates dropped")
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.answer, "getUpdates")
			return ok("true")
		}
		s.mu.Unlock()
		s.push(textUpdate(1, "waited"))
		c, _ := s.channel(t)
		stop := running(t, c, j)
		pass(2 * time.Second)
		synctest.Wait()
		if !slices.Equal(j.texts(), []string{"waited"}) {
			t.Errorf("taken %q", j.texts())
		}
		_ = stop()
	})
}

// brokenLine fails while broken is set, without having connected.
type brokenLine struct {
	*script
	broken func(method string) error
}

func (b *brokenLine) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.broken(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]); err != nil {
		return nil, err
	}
	return b.script.RoundTrip(r)
}

func TestOutageIsReportedThenDeafThenHeals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		var up atomic.Bool
		var tries atomic.Int64
		line := &brokenLine{s, func(string) error {
			if tries.Add(1); !up.Load() {
				return io.ErrUnexpectedEOF
			}
			return nil
		}}
		c, logs := newChannel(t, "http://bot.example", &http.Client{Transport: line})
		s.push(textUpdate(1, "late"))
		stop := running(t, c, j)
		pass(30 * time.Second)
		synctest.Wait()
		if st := j.last(); st.State != channels.Connecting || st.Cause == "" {
			t.Errorf("state after 30 s: %+v", st)
		}
		pass(2 * time.Minute)
		synctest.Wait()
		if st, ok := j.seen(channels.Deaf); !ok || st.Hint == "" {
			t.Error("not deaf after two minutes of failing")
		}
		if n := tries.Load(); n > 30 {
			t.Errorf("%d tries in 150 s", n)
		}
		up.Store(true)
		pass(31 * time.Second)
		synctest.Wait()
		if !slices.Equal(j.texts(), []string{"late"}) || j.last().State != channels.Ready {
			t.Errorf("taken %q, state %+v", j.texts(), j.last())
		}
		for _, st := range j.told() {
			if strings.Contains(fmt.Sprint(st.Cause, st.Hint, st.Err), "secretsecret") {
				t.Errorf("token in status: %+v", st)
			}
		}
		if strings.Contains(logs.String(), "secretsecret") {
			t.Error("token in log")
		}
		_ = stop()
	})
}

func TestPollThatNeverReturnsIsDeafAndReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		hang := 0
		line := &hangingLine{script: s, hang: func(method string) bool {
			if method == "getUpdates" {
				hang++
			}
			return hang == 2 // the first long poll
		}}
		c, _ := newChannel(t, "http://bot.example", &http.Client{Transport: line})
		stop := running(t, c, j)
		pass(64 * time.Second)
		synctest.Wait()
		if _, ok := j.seen(channels.Deaf); ok {
			t.Fatal("deaf before its time")
		}
		s.push(textUpdate(1, "after"))
		pass(5 * time.Second)
		synctest.Wait()
		if _, ok := j.seen(channels.Deaf); !ok {
			t.Error("not reported as deaf")
		}
		if !slices.Equal(j.texts(), []string{"after"}) {
			t.Errorf("taken %q", j.texts())
		}
		_ = stop()
	})
}

type hangingLine struct {
	*script
	hang func(method string) bool
}

func (h *hangingLine) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.hang(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return h.script.RoundTrip(r)
}

func TestServerThatHoldsUpdatesBackIsDeaf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		s.on("getWebhookInfo", ok(`{"url":"","pending_update_count":3}`))
		c, _ := s.channel(t)
		stop := running(t, c, j)
		pass(4 * time.Minute)
		synctest.Wait()
		if _, ok := j.seen(channels.Deaf); ok {
			t.Fatal("deaf before its time")
		}
		pass(3 * time.Minute)
		synctest.Wait()
		if st, ok := j.seen(channels.Deaf); !ok || !strings.Contains(st.Cause, "3 updates") {
			t.Errorf("status %+v", st)
		}
		s.push(textUpdate(1, "a"))
		synctest.Wait()
		if last := j.last(); last.State != channels.Ready {
			t.Errorf("state %+v after an update came", last)
		}
		_ = stop()
	})
}

func TestServerThatHoldsNoPollIsNotAskedWithoutAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		s.on("getUpdates", ok(`[]`))
		c, _ := s.channel(t)
		stop := running(t, c, j)
		pass(time.Minute)
		synctest.Wait()
		if n := len(s.made("getUpdates")); n < 500 || n > 700 {
			t.Errorf("asked %d times in a minute, want about ten a second", n)
		}
		if n := len(s.made("getWebhookInfo")); n > 1 {
			t.Errorf("asked %d times what is held", n)
		}
		if last := j.last(); last.State != channels.Ready {
			t.Errorf("state %+v", last)
		}
		_ = stop()
	})
}

func TestOddUpdateBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		s.push(textUpdate(1, "a"),
			`{"update_id":2,"message":{"message_id":"not a number"}}`,
			`{"update_id":3,"message":"not an object"}`,
			`{"update_id":4,"poll_answer":{"of":"a kind that we never asked for"}}`,
			textUpdate(5, "b"))
		c, _ := s.channel(t)
		stop := running(t, c, j)
		synctest.Wait()
		var kinds []string
		for _, in := range j.all() {
			kinds = append(kinds, string(in.Kind)+" "+in.Key)
		}
		want := []string{"message m:7:101", "unparsed u:2", "unparsed u:3", "message m:7:105"}
		if !slices.Equal(kinds, want) || s.confirmed() != 5 {
			t.Fatalf("taken %q, confirmed %d", kinds, s.confirmed())
		}
		if string(j.all()[1].Data) != `{"update_id":2,"message":{"message_id":"not a number"}}` {
			t.Errorf("raw event is %s", j.all()[1].Data)
		}
		_ = stop()
	})
}

// A batch of nothing but confirmed updates is no trouble, unless it never ends; and ids may begin again lower down.
func TestR02_OffsetFollowsUpdatesThatLieBelowIt(t *testing.T) {
	t.Parallel()
	batch := func(ids ...int) (raws []json.RawMessage) {
		for _, id := range ids {
			raws = append(raws, json.RawMessage(textUpdate(id, "x")))
		}
		return raws
	}
	c, _ := newScript().channel(t)
	r := &receiver{c: c, in: newJournal(), self: &identity{}}
	steps := []struct {
		ids  []int
		next int64
		err  error
	}{
		{[]int{5, 6, 7}, 8, nil},
		{[]int{7}, 8, nil}, // once more
		{[]int{3}, 4, nil}, // again
		{[]int{4}, 5, nil}, // and on
		{[]int{4}, 5, nil}, // a server that ignores the offset: three times
		{[]int{4}, 5, nil}, //
		{[]int{4}, 5, nil}, //
		{[]int{4}, 5, errStale},
		{[]int{5}, 6, nil},
	}
	for i, s := range steps {
		if err := r.take(t.Context(), batch(s.ids...)); !errors.Is(err, s.err) || r.offset != s.next {
			t.Errorf("step %d: offset %d and error %v, want %d and %v", i, r.offset, err, s.next, s.err)
		}
	}
	if err := r.take(t.Context(), []json.RawMessage{[]byte(`{"message":{}}`)}); !errors.Is(err, errNoID) {
		t.Errorf("a batch without ids ended in %v", err)
	}
}

func TestButtonPressIsAnsweredAfterItIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		j.before = func() {
			if len(s.made("answerCallbackQuery")) != 0 {
				t.Error("answered before it was durable")
			}
		}
		s.push(`{"update_id":1,"callback_query":{"id":"cb9","from":{"id":7,"first_name":"Ana"},"data":"approve:x","message":{"message_id":55,"date":1,"chat":{"id":7,"type":"private"}}}}`)
		c, _ := s.channel(t)
		stop := running(t, c, j)
		synctest.Wait()
		calls := s.made("answerCallbackQuery")
		if len(calls) != 1 || calls[0].Get("callback_query_id") != "cb9" {
			t.Errorf("answers %v", calls)
		}
		_ = stop()
	})
}

func TestCancelAbortsALongPollAtOnce(t *testing.T) {
	t.Parallel()
	polling := make(chan struct{}, 10)
	c := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasSuffix(r.URL.Path, "/getMe") {
			_, _ = io.WriteString(w, ok(`{"id":1,"username":"b"}`).body)
			return
		}
		polling <- struct{}{}
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, newJournal()) }()
	<-polling
	began := time.Now()
	cancel(errors.New("over"))
	if err := <-done; err != nil {
		t.Fatalf("Run: %v", err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestOwnChannelPostIsNotHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := newScript(), newJournal()
		// The post comes back before the call that made it has returned.
		s.mu.Lock()
		s.answer["sendMessage"] = func(url.Values) reply {
			s.push(`{"update_id":1,"channel_post":{"message_id":31,"date":1700000000,"chat":{"id":-1009,"type":"channel","title":"News"},"text":"ours"}}`,
				`{"update_id":2,"channel_post":{"message_id":32,"date":1700000000,"chat":{"id":-1009,"type":"channel","title":"News"},"text":"theirs"}}`)
			pass(time.Second)
			return ok(`{"message_id":31}`)
		}
		s.mu.Unlock()
		c, _ := s.channel(t)
		stop := running(t, c, j)
		synctest.Wait()
		if _, err := c.Send(t.Context(), channels.Post{To: channels.Address{Kind: channels.Room, Peer: "-1009"}, Text: "ours"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := j.texts(); !slices.Equal(got, []string{"theirs"}) || s.confirmed() != 2 {
			t.Errorf("taken %q, confirmed %d", got, s.confirmed())
		}
		_ = stop()
	})
}
