// Package whatsapp is the adapter for WhatsApp as a linked device, over go.mau.fi/whatsmeow: it receives what is written to
// the account's phone number, and sends one message per Send. The protocol has no public documents; what is relied on was
// read in whatsmeow's source and is named where it is used. It is an unofficial client: docs/channels/whatsapp.md says what
// that means.
//
// It splits, retries, paces and remembers nothing that the gateway remembers. What it keeps, in wa-<channel>.db of the data
// directory, is what the protocol makes every device keep: its keys, and for a while what it sent, since people's devices
// may ask for a message again.
//
// Run owns all goroutines of the package but those of a Login or Check, which wait for theirs.
package whatsapp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow"
	wastore "go.mau.fi/whatsmeow/store"

	"parley/channels"
	"parley/workspace/lazy"
)

// Network is the name of the network in addresses and in channels[].type.
const Network channels.Network = "whatsapp"

const (
	maxText   = 4096      // UTF-16 units: WhatsApp takes 65,536, people read less
	maxUpload = 100 << 20 // bytes: WhatsApp takes 2 GB of a document
)

var (
	nameFormat = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	userFormat = lazy.Regexp(`^\+?[1-9][0-9]{5,19}$|^[0-9]{5,20}@(s\.whatsapp\.net|lid)$|^[0-9]{5,25}(-[0-9]{5,15})?@g\.us$`)
)

// Options is a whatsapp section of the configuration.
type Options struct {
	DeviceName string `yaml:"device_name" doc:"Name in the phone's list of linked devices. Default: Parley." example:"Parley"`
	Version    string `yaml:"client_version" doc:"Version that this client tells WhatsApp, such as 2.3000.1032642223, or newest to ask WhatsApp for it at the start: for the time when the built-in one is refused as outdated." example:"newest"`
	Grow       bool   `yaml:"stream_edits" doc:"Show how an answer grows, by edits. Each goes to every device of everyone and marks the message as edited, so that an answer comes whole by default." example:"true"`
	MarkRead   bool   `yaml:"mark_read" doc:"Show people the blue ticks as soon as their message is being answered." example:"true"`
	APIURL     string `yaml:"api_url" doc:"Another server in place of WhatsApp's, for tests." example:"http://127.0.0.1:8081"`
	RootKey    string `yaml:"root_key" doc:"Key in hex that signs that server's certificate. It holds for every whatsapp channel of the process."`
}

// Channel is one linked device. It is safe for concurrent use.
type Channel struct {
	name  string
	opt   Options
	base  *url.URL // of another server; nil: WhatsApp's own
	log   *slog.Logger
	http  http.RoundTripper
	clock channels.Clock
	keep  *keep
	pace  pace

	answer  atomic.Int64  // answerFor, as a time.Duration; tests shorten it
	turn    chan struct{} // one send at a time: whatsmeow has one lock for all, which heeds no context
	changed chan struct{} // the device was linked or taken away; holds one
	linking sync.Mutex    // held by a Login, Logout or Check

	mu      sync.Mutex
	live    *session // of the running Run
	running bool
	account channels.AccountID
	version wastore.WAVersionContainer // that is told; zero: the built-in one
}

var (
	_ channels.Channel   = (*Channel)(nil)
	_ channels.Editor    = (*Channel)(nil)
	_ channels.Deleter   = (*Channel)(nil)
	_ channels.Typer     = (*Channel)(nil)
	_ channels.Reactor   = (*Channel)(nil)
	_ channels.Opener    = (*Channel)(nil)
	_ channels.Linker    = (*Channel)(nil)
	_ channels.Checker   = (*Channel)(nil)
	_ channels.Describer = (*Channel)(nil)
	_ channels.Accounter = (*Channel)(nil)
)

// Factory is whatsapp's line in channels/all.
func Factory() channels.Factory { return channels.FactoryOf(Network, New) }

// New makes the channel; it does no IO. Its errors name every bad option.
func New(name string, o Options, d channels.Deps) (*Channel, error) {
	base, err := o.validate()
	if err == nil && !nameFormat().MatchString(name) { // it becomes the name of a file
		err = errors.New("its name may hold letters, digits, ., _ and - only")
	}
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	if o.RootKey != "" {
		trust(o.RootKey)
	}
	hush()
	log := d.Log.With("channel", name)
	var rt http.RoundTripper = http.DefaultTransport
	if d.HTTP != nil && d.HTTP.Transport != nil {
		rt = d.HTTP.Transport
	}
	ch := &Channel{
		name: name, pace: usualPace(), opt: o, base: base, log: log, http: rt, clock: d.Clock,
		keep:    newKeep(d.Dir, name, log),
		turn:    make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
	}
	ch.answer.Store(int64(answerFor))
	return ch, nil
}

// trust sets the key that a server's certificate must lead to. whatsmeow has one for the whole process: it is not
// written when it is there already, so that channels may be made side by side.
func trust(key string) {
	raw, err := hex.DecodeString(key)
	if err != nil || len(raw) != 32 || [32]byte(raw) == whatsmeow.WACertPubKey {
		return // validate has told the first two
	}
	whatsmeow.WACertPubKey = [32]byte(raw)
}

// Validate says what of the options can be known to be wrong without asking WhatsApp.
func (o *Options) Validate() error {
	_, err := o.validate()
	return err
}

// CheckID says how an id of WhatsApp looks, if this is none.
func (o *Options) CheckID(id string) error {
	if !userFormat().MatchString(id) {
		return errors.New("must be a phone number with its country code and nothing else, such as 4915123456789, or a group's id such as " +
			"120363041234567890@g.us; to find one, have them write to the bot and look at parley pairing list")
	}
	return nil
}

func (o *Options) validate() (base *url.URL, err error) {
	var problems []error
	wrong := func(option, text string) {
		problems = append(problems, &channels.OptionError{Name: option, Err: errors.New(text)})
	}
	if o.Version != "" && o.Version != newest {
		if _, err := wastore.ParseVersion(o.Version); err != nil {
			wrong("client_version", "must be three numbers such as 2.3000.1032642223, or newest")
		}
	}
	if o.APIURL != "" {
		base, err = url.Parse(strings.TrimRight(o.APIURL, "/"))
		if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") || base.RawQuery != "" || base.Fragment != "" {
			wrong("api_url", "must be an http or https address without query, such as http://127.0.0.1:8081")
		}
	}
	if o.RootKey != "" {
		if raw, err := hex.DecodeString(o.RootKey); err != nil || len(raw) != 32 {
			wrong("root_key", "must be 64 hex digits")
		}
		if o.APIURL == "" { // it would take the place of the key that WhatsApp's own servers prove themselves by
			wrong("root_key", "is the key of another server, which api_url names")
		}
	}
	return base, errors.Join(problems...)
}

// Account is the account's phone number as WhatsApp writes it, empty until a linked device is known.
func (c *Channel) Account() channels.AccountID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.account
}

// Traits are WhatsApp's limits, and the pace that it bears: accounts that write fast are banned.
func (c *Channel) Traits() channels.Traits {
	return channels.Traits{
		Idempotent:  true, // the message id is made of the token
		Unit:        channels.UTF16,
		MaxUnits:    maxText,
		Dialect:     channels.WhatsApp,
		Whole:       !c.opt.Grow,
		EditEvery:   4 * time.Second, // every edit goes encrypted to each device of everyone
		EditGroup:   8 * time.Second,
		SendEvery:   time.Second,
		TypingEvery: 8 * time.Second, // it shows for 10 to 25 s
		MaxFile:     maxUpload,
		MaxParts:    5,
	}
}

// connected is the session that can send.
func (c *Channel) connected() (*session, error) {
	c.mu.Lock()
	s := c.live
	c.mu.Unlock()
	if s == nil {
		return nil, &channels.Error{Class: channels.Retry, Err: errors.New("whatsapp is not connected")}
	}
	return s, s.sendable()
}

// start makes the one Run known, and tells when there is one already.
func (c *Channel) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return errors.New("whatsapp runs already")
	}
	c.running = true
	return nil
}

func (c *Channel) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
}

func (c *Channel) setLive(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live = s
	if s != nil {
		c.account = channels.AccountID(s.me.String())
	}
}

// touch tells Run that the device was linked or taken away.
func (c *Channel) touch() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}
