package channeltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/goleak"

	"parley/channels"
)

// rig is one adapter in one world, with the gateway's side played by the suite.
type rig struct {
	t     T
	w     World
	cfg   config
	ch    channels.Channel
	in    *intake
	log   *Log
	tr    *http.Transport
	base  goleak.Option
	stopf context.CancelFunc
	ended chan error
	heard []string // texts that must hold no secret: errors of calls
	posts int
	// refused says that the account was revoked, so that Run may end by itself.
	refused bool
}

func newRig(t T, w World, cfg config) *rig {
	return &rig{t: t, w: w, cfg: cfg, in: newIntake(), log: &Log{}, tr: &http.Transport{MaxIdleConnsPerHost: 512}}
}

// open makes the adapter; false: it cannot be made, which is reported.
func (r *rig) open() bool {
	r.t.Helper()
	ch, err := r.w.Open(channels.Deps{
		Log:   slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		HTTP:  &http.Client{Transport: r.tr},
		Clock: &Clock{},
	})
	if err != nil {
		r.t.Errorf("make the adapter: %v", err)
		return false
	}
	r.ch, r.in.backfill = ch, traitsOf(ch).Backfill
	return true
}

// start runs the adapter and waits until it is ready.
func (r *rig) start() {
	r.t.Helper()
	r.launch()
	r.until("the status ready", func() bool { return r.in.state(channels.Ready) })
}

// launch runs the adapter under a small supervisor: it starts it again after errors that are not fatal.
func (r *rig) launch() {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.stopf, r.ended = cancel, make(chan error, 1)
	ended, ch := r.ended, r.ch
	r.base = goleak.IgnoreCurrent()
	go func() {
		for {
			err := runSafely(ctx, ch, r.in)
			var p *escaped
			if ctx.Err() != nil || channels.ClassOf(err) == channels.Fatal || errors.As(err, &p) {
				ended <- err
				return
			}
			r.in.restarted(err)
			if !channels.Sleep(ctx, 5*time.Millisecond) {
				ended <- nil
				return
			}
		}
	}()
}

// escaped is a panic that left Run.
type escaped struct {
	value any
	stack []byte
}

func (e *escaped) Error() string { return fmt.Sprintf("panic left Run: %v\n%s", e.value, e.stack) }

func runSafely(ctx context.Context, ch channels.Channel, in channels.Intake) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &escaped{v, debug.Stack()}
		}
	}()
	return ch.Run(ctx, in)
}

// stop ends Run as a shutdown does, and checks that it ends soon, with nil, and leaves no goroutine.
func (r *rig) stop() {
	r.t.Helper()
	if r.stopf == nil {
		return
	}
	r.stopf()
	r.stopf = nil
	soon := time.NewTimer(r.cfg.brief)
	defer soon.Stop()
	select {
	case err := <-r.ended:
		if err != nil && !(r.refused && channels.ClassOf(err) == channels.Fatal) {
			r.t.Errorf("Run returned %v after its context ended, want nil", err)
		}
	case <-soon.C:
		r.t.Errorf("Run did not return within %v of its context's end", r.cfg.brief)
		r.in.release()
		return // what it left behind is part of the same fault
	}
	r.in.release()
	r.tr.CloseIdleConnections()
	// A cut makes the fake listen again. Adapters never listen: they are mounted on the one listener.
	listening := goleak.IgnoreAnyFunction("net/http.(*Server).Serve")
	if err := goleak.Find(r.base, listening); err != nil {
		r.t.Errorf("after Run returned: %v", err)
	}
}

// restart is a stop and a new process.
func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.in.renew()
	if r.open() {
		r.start()
	}
}

// end closes what is open and looks for secrets in everything that was said.
func (r *rig) end() {
	r.t.Helper()
	r.in.release()
	r.stop()
	r.tr.CloseIdleConnections()
	r.checkSecrets()
}

func (r *rig) checkSecrets() {
	r.t.Helper()
	said := map[string]string{"log": r.log.String(), "status": r.in.statusText(), "errors": strings.Join(r.heard, "\n")}
	for _, secret := range r.w.Secrets() {
		for where, text := range said {
			if strings.Contains(text, secret) {
				r.t.Errorf("a secret is in the %s", where)
			}
		}
	}
}

// cannot ends a check that needs a deed which the harness does not offer.
type cannot Deed

// act makes something happen. A harness that cannot ends the check as skipped.
func (r *rig) act(e Event) channels.MessageID {
	id, ok := r.w.Act(e)
	if !ok {
		panic(cannot(e.Do)) // recovered in runCheck: the one way out of a check from any depth
	}
	r.refused = r.refused || e.Do == Revoke
	return id
}

// write has a person write a plain text.
func (r *rig) write(p Place, who Who, text string) channels.MessageID {
	return r.act(Event{Do: Write, Place: p, Who: who, Text: text})
}

// until waits for something that the intake sees.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), r.cfg.patience)
	defer cancel()
	if !r.in.wait(ctx, cond) {
		r.t.Fatalf("waited %v for %s; the intake has %s", r.cfg.patience, what, r.in.summary())
	}
}

// sees waits for something that people see.
func (r *rig) sees(what string, cond func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), r.cfg.patience)
	defer cancel()
	if err := r.w.Wait(ctx, cond); err != nil {
		r.t.Fatalf("waited %v for %s", r.cfg.patience, what)
	}
}

// get waits for an inbound that matches and returns it.
func (r *rig) get(what string, match func(channels.Inbound) bool) channels.Inbound {
	r.t.Helper()
	var got channels.Inbound
	r.until(what, func() bool {
		for _, in := range r.in.taken() {
			if match(in) {
				got = in
				return true
			}
		}
		return false
	})
	return got
}

// message waits for a message by its id and place.
func (r *rig) message(p Place, id channels.MessageID) channels.Inbound {
	r.t.Helper()
	to := r.w.Address(p)
	return r.get(fmt.Sprintf("message %s of %s", id, p), func(in channels.Inbound) bool {
		return in.ID == id && in.To.Peer == to.Peer && (in.Kind == channels.KindMessage)
	})
}

// fence waits until everything that happened so far has been received.
func (r *rig) fence(p Place) {
	r.t.Helper()
	id := r.act(Event{Do: Fence, Place: p, Who: Ana, Text: "fence"})
	r.message(p, id)
}

// call runs f with the time that a call may take, and keeps its error for the search for secrets.
func (r *rig) call(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), r.cfg.patience)
	defer cancel()
	err := f(ctx)
	if err != nil {
		r.heard = append(r.heard, fmt.Sprintf("%v %+v %#v", err, err, err))
	}
	return err
}

// send sends a post that must succeed.
func (r *rig) send(p channels.Post) channels.MessageID {
	r.t.Helper()
	id, err := r.trySend(p)
	if err != nil {
		r.t.Fatalf("Send: %v", err)
	}
	if id == "" {
		r.t.Errorf("Send succeeded with an empty message id")
	}
	return id
}

func (r *rig) trySend(p channels.Post) (id channels.MessageID, err error) {
	err = r.call(func(ctx context.Context) error {
		id, err = r.ch.Send(ctx, p)
		return err
	})
	return id, err
}

// post is a text for a place.
func (r *rig) post(p Place, text string) channels.Post {
	r.posts++
	return channels.Post{To: r.w.Address(p), Token: fmt.Sprintf("01JD0PARLEYCHANNELTEST%04d", r.posts), Text: text, Plain: text}
}
