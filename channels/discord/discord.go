// Package discord is the adapter for Discord bots (https://discord.com/developers/docs): it listens at the gateway, reads
// back over REST what was missed, normalises both through one path, and sends one message per Send.
//
// It splits, retries, paces and remembers nothing: that is the core's. REST calls, their errors, uploads and the payload
// types are discordgo's. The gateway connection is this package's own, over the websocket library that discordgo uses:
// discordgo confirms an event before it was handled, sleeps a second under its lock at every close, identifies at once
// when a session is refused, has no deadline for reads and ignores resume_gateway_url.
//
// Run owns all goroutines of the package: the supervisor itself, one reader per connection, one that takes events in order,
// one that writes down which session the next process can resume, and short ones that answer interactions within their
// three seconds.
package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/workspace/lazy"
)

// Network is the name of the network in addresses and in channels[].type.
const Network channels.Network = "discord"

const (
	defaultAPI = "https://discord.com/api/v10/"

	maxText   = 2000 // "characters"; counted in UTF-16, the strictest reading
	maxUpload = 10 << 20
	maxFetch  = 100 << 20 // of an attachment whose size is not told
	maxFiles  = 10
	maxValue  = 100 // of a custom_id
	maxLabel  = 80
	inARow    = 5
	maxRows   = 5

	// sameFor is how long Discord certainly takes a nonce for the same message; "a few minutes" in its words.
	sameFor = 2 * time.Minute
)

// intents are what the bot listens to. MessageContent is left out when the portal has not granted it.
const intents = discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions | discordgo.IntentMessageContent

var (
	// tokenFormat keeps blanks and line ends out of the header: three parts of base64.
	tokenFormat = lazy.Regexp(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)
	idFormat    = lazy.Regexp(`^[0-9]{1,20}$`) // a snowflake; a server in Discord's place counts from 1
)

// Options is a discord section of the configuration.
type Options struct {
	Token  channels.Secret `yaml:"token" secret:"true" required:"true" doc:"Bot token from the developer portal, without \"Bot\" before it." example:"${DISCORD_TOKEN}"`
	APIURL string          `yaml:"api_url" doc:"Another REST base, with the version. Default: https://discord.com/api/v10/." example:"http://127.0.0.1:8082/api/v10/"`
}

// Channel is one bot. It is safe for concurrent use.
type Channel struct {
	rest  *rest
	log   *slog.Logger
	clock channels.Clock
	self  atomic.Pointer[identity] // nil until Discord has said who we are
	rooms *rooms
	acks  *acks
	pace  pace
	name  string
	dir   string // where the session is kept between two runs; empty: nowhere
}

var (
	_ channels.Channel       = (*Channel)(nil)
	_ channels.Editor        = (*Channel)(nil)
	_ channels.Deleter       = (*Channel)(nil)
	_ channels.Finder        = (*Channel)(nil)
	_ channels.Typer         = (*Channel)(nil)
	_ channels.Reactor       = (*Channel)(nil)
	_ channels.Opener        = (*Channel)(nil)
	_ channels.Historian     = (*Channel)(nil)
	_ channels.MenuPublisher = (*Channel)(nil)
	_ channels.Checker       = (*Channel)(nil)
	_ channels.Describer     = (*Channel)(nil)
	_ channels.Accounter     = (*Channel)(nil)
)

// Factory is discord's line in channels/all.
func Factory() channels.Factory { return channels.FactoryOf(Network, New) }

// New makes the channel; it does no IO. Its errors name every bad option.
func New(name string, o Options, d channels.Deps) (*Channel, error) {
	base, err := o.validate()
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	r, err := newREST(base, o.Token, d.HTTP)
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	return &Channel{rest: r, log: d.Log.With("channel", name), clock: d.Clock, rooms: newRooms(), acks: newAcks(), pace: usualPace(),
		name: name, dir: d.Dir}, nil
}

// Validate says what of the options can be known to be wrong without asking Discord.
func (o *Options) Validate() error {
	_, err := o.validate()
	return err
}

// CheckID says how an id of Discord looks, if this is none.
func (o *Options) CheckID(id string) error {
	if !idFormat().MatchString(id) {
		return errors.New("must be Discord's id, a number of 17 to 19 digits: switch on Developer Mode in Discord's settings " +
			"(Advanced), then right-click the person, channel or role and choose Copy ID")
	}
	return nil
}

// elsewhere says that another server stands in Discord's place, whose tokens may look otherwise.
func (o *Options) elsewhere() bool { return o.APIURL != "" && o.APIURL != defaultAPI }

func (o *Options) validate() (*url.URL, error) {
	var problems []error
	wrong := func(option, text string) {
		problems = append(problems, &channels.OptionError{Name: option, Err: errors.New(text)})
	}
	switch token := o.Token.Reveal(); {
	case token == "":
		wrong("token", "is missing: the developer portal gives one under Bot, Reset Token")
	case strings.HasPrefix(token, "Bot "):
		wrong("token", `must stand without "Bot " before it`)
	case strings.ContainsAny(token, " \n\t"), !o.elsewhere() && !tokenFormat().MatchString(token):
		wrong("token", "is not a bot token, which has three parts with dots between them: copy it whole from the developer portal, Bot, Reset Token")
	}
	raw := o.APIURL
	if raw == "" {
		raw = defaultAPI
	}
	base, err := url.Parse(strings.TrimRight(raw, "/") + "/")
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") || base.RawQuery != "" || base.Fragment != "" {
		wrong("api_url", "must be an http or https address without query, such as "+defaultAPI)
	}
	return base, errors.Join(problems...)
}

// Account is the bot's user id, empty until Discord has told it.
func (c *Channel) Account() channels.AccountID {
	if self := c.self.Load(); self != nil {
		return channels.AccountID(self.id)
	}
	return ""
}

// Traits are Discord's limits, and the pace that it bears: about five messages or edits in five seconds of a channel.
func (c *Channel) Traits() channels.Traits {
	return channels.Traits{
		Idempotent:  true,
		SameFor:     sameFor,
		Unit:        channels.UTF16,
		MaxUnits:    maxText,
		Dialect:     channels.Discord,
		Threads:     true,
		Buttons:     true,
		Handles:     true,
		EditEvery:   1200 * time.Millisecond,
		SendEvery:   time.Second,
		TypingEvery: 8 * time.Second, // it shows for 10 s
		MaxFile:     maxUpload,
		MaxParts:    5,
		Backfill:    true,
	}
}

// Flags of an application, https://discord.com/developers/docs/resources/application#application-object-application-flags.
const (
	flagContent      = 1 << 18
	flagContentSmall = 1 << 19 // an app in fewer than a hundred servers
)

// identity is who the bot is.
type identity struct {
	id, name, app string
	content       atomic.Bool // it may read messages that do not mention it
	guessed       bool        // nobody has said so: close code 4014 will, if it is not
}

// intents are what the bot asks to hear.
func (s *identity) intents() int {
	if s.content.Load() {
		return int(intents)
	}
	return int(intents &^ discordgo.IntentMessageContent)
}

// whoami asks who the bot is and what it was granted, and remembers it.
func (c *Channel) whoami(ctx context.Context) (*identity, error) {
	var me struct {
		ID   string `json:"id"`
		Name string `json:"username"`
	}
	err := c.rest.get(ctx, "ask who the bot is", "users/@me", &me)
	if err == nil && me.ID == "" {
		err = &channels.Error{Class: channels.Fatal, Err: errors.New("wrong api_url: it answered without an id")}
	}
	if said := refusalOf(err); said != nil && said.status == http.StatusNotFound {
		err = &channels.Error{Class: channels.Fatal, Err: fmt.Errorf("wrong api_url: %w", err)}
	}
	if err != nil {
		return nil, err
	}
	self := &identity{id: me.ID, name: me.Name}
	if err := c.granted(ctx, self); err != nil {
		return nil, err
	}
	c.self.Store(self)
	return self, nil
}

// granted asks for the application and whether it may read every message. A server that has no such call, or does not say
// (flags are optional), is taken at its best: a bot's application mostly has its id, and close code 4014 says it if the
// content of messages is not granted.
func (c *Channel) granted(ctx context.Context, self *identity) error {
	var a struct {
		ID    string `json:"id"`
		Flags *int   `json:"flags"`
	}
	err := c.rest.get(ctx, "ask about the application", "applications/@me", &a)
	if said := refusalOf(err); said != nil && (said.status == http.StatusNotFound || said.status == http.StatusMethodNotAllowed) {
		err = nil
	}
	if err != nil {
		return err
	}
	self.app = cmp.Or(a.ID, self.id)
	self.guessed = a.Flags == nil
	self.content.Store(self.guessed || *a.Flags&(flagContent|flagContentSmall) != 0)
	return nil
}

// known is who the bot is; it asks when nobody has yet.
func (c *Channel) known(ctx context.Context) (*identity, error) {
	if self := c.self.Load(); self != nil {
		return self, nil
	}
	return c.whoami(ctx)
}
