package whatsapp_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/whatsapp"
	"parley/channels/whatsapp/whatsapptest"
)

// rig is the adapter over the fake, with the gateway's side played here.
type rig struct {
	t    *testing.T
	net  *whatsapptest.Server
	dir  string
	opt  whatsapp.Options
	tr   *http.Transport
	ch   *whatsapp.Channel
	in   *journal
	log  *channeltest.Log
	stop context.CancelFunc
	over chan error
	time *channeltest.Clock
}

// device is linked once for all tests of the package.
var device = sync.OnceValue(func() linkedDevice {
	var d linkedDevice
	dir, err := os.MkdirTemp("", "wa-device-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	d, err = makeDevice(dir)
	if err != nil {
		panic(err)
	}
	return d
})

func newRig(t *testing.T, linked bool) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), in: newJournal(), log: &channeltest.Log{}, time: &channeltest.Clock{}}
	r.net = whatsapptest.Start(t, whatsapptest.Options{})
	for _, who := range []channeltest.Who{channeltest.Ana, channeltest.Ben} {
		r.net.AddPerson(person(who))
	}
	r.net.AddGroup(whatsapptest.Group{ID: groupID, Subject: "Friends", Members: []string{ana.Phone, ben.Phone}})
	if linked {
		d := device()
		r.net.Adopt(d.known)
		if err := os.WriteFile(filepath.Join(r.dir, "wa-wa.db"), d.file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.opt = whatsapp.Options{APIURL: r.net.URL()}
	t.Cleanup(func() {
		r.halt()
		if t.Failed() {
			t.Logf("complaints: %q\nstates: %+v\nlog: %s", r.net.Complaints(), r.in.told(), r.log)
		}
	})
	return r
}

var ana, ben = person(channeltest.Ana), person(channeltest.Ben)

// open makes the channel as a new process does.
func (r *rig) open() *whatsapp.Channel {
	r.t.Helper()
	r.tr = &http.Transport{}
	ch, err := whatsapp.New("wa", r.opt, channels.Deps{Log: r.log.Logger(),
		HTTP: &http.Client{Transport: r.tr}, Clock: r.time, Dir: r.dir})
	if err != nil {
		r.t.Fatal(err)
	}
	ch.Hurry()
	r.ch = ch
	return ch
}

// run opens and runs it.
func (r *rig) run() {
	r.t.Helper()
	if r.ch == nil {
		r.open()
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	r.stop, r.over = cancel, make(chan error, 1)
	ch, over := r.ch, r.over
	go func() { over <- ch.Run(ctx, r.in) }() // halt waits for it
}

func (r *rig) ready() {
	r.t.Helper()
	before := len(r.in.told())
	r.run()
	r.in.until(r.t, "ready", func() bool { all := r.in.told(); return len(all) > before && all[len(all)-1].State == channels.Ready })
}

// halt ends the process.
func (r *rig) halt() {
	if r.stop == nil {
		return
	}
	r.stop()
	r.stop = nil
	select {
	case err := <-r.over:
		if err != nil && channels.ClassOf(err) != channels.Fatal {
			r.t.Errorf("Run ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		r.t.Error("Run does not end")
	}
	r.tr.CloseIdleConnections()
	r.ch = nil
}

func (r *rig) account() string { return r.net.Account().PN().String() }

// dm is the address of a chat with somebody.
func (r *rig) dm(who whatsapptest.Person) channels.Address {
	return channels.Address{Network: whatsapp.Network, Account: channels.AccountID(r.account()), Kind: channels.DM, Peer: channels.PeerID(who.PN().String())}
}

func (r *rig) group() channels.Address {
	a := r.dm(ana)
	a.Kind, a.Peer = channels.Group, channels.PeerID(groupID+"@g.us")
	return a
}

func (r *rig) send(p channels.Post) channels.MessageID {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	id, err := r.ch.Send(ctx, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// sees waits for something on the network.
func (r *rig) sees(what string, cond func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	if err := r.net.Wait(ctx, cond); err != nil {
		r.t.Fatalf("waited for %s", what)
	}
}

// of names another's message.
func of(id string, who whatsapptest.Person) channels.MessageID {
	return channels.MessageID(id + " " + who.PN().String())
}

// journal is an Intake that keeps what it takes, once by its key.
type journal struct {
	mu      sync.Mutex
	changed chan struct{}
	taken   []channels.Inbound
	keys    map[string]channels.Inbound
	offers  int
	states  []channels.Status
	refuse  func(offer int) error
	unequal []string
}

func newJournal() *journal {
	return &journal{changed: make(chan struct{}), keys: map[string]channels.Inbound{}}
}

func (j *journal) stir() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) Receive(_ context.Context, batch ...channels.Inbound) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.stir()
	j.offers++
	if j.refuse != nil {
		if err := j.refuse(j.offers); err != nil {
			return err
		}
	}
	for _, in := range batch {
		if old, again := j.keys[in.Key]; again {
			if fmt.Sprintf("%+v", old) != fmt.Sprintf("%+v", in) {
				j.unequal = append(j.unequal, fmt.Sprintf("%+v\nwas\n%+v", in, old))
			}
			continue
		}
		j.keys[in.Key] = in
		j.taken = append(j.taken, in)
	}
	return nil
}

func (j *journal) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	return nil, nil
}

func (j *journal) Report(s channels.Status) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.states = append(j.states, s)
	j.stir()
}

func (j *journal) all() []channels.Inbound {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.taken)
}

func (j *journal) told() []channels.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.states)
}

func (j *journal) last() channels.Status {
	all := j.told()
	if len(all) == 0 {
		return channels.Status{}
	}
	return all[len(all)-1]
}

func (j *journal) decide(f func(offer int) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refuse = f
}

func (j *journal) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		j.mu.Lock()
		changed := j.changed
		j.mu.Unlock()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("waited for %s; states %+v; taken %+v", what, j.told(), j.all())
		}
	}
}

// get waits for an inbound.
func (j *journal) get(t *testing.T, what string, match func(channels.Inbound) bool) channels.Inbound {
	t.Helper()
	var got channels.Inbound
	j.until(t, what, func() bool {
		i := slices.IndexFunc(j.all(), match)
		if i >= 0 {
			got = j.all()[i]
		}
		return i >= 0
	})
	return got
}

func (j *journal) text(t *testing.T, text string) channels.Inbound {
	t.Helper()
	return j.get(t, text, func(in channels.Inbound) bool { return in.Text == text })
}
