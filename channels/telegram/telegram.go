// Package telegram is the adapter for Telegram's Bot API (https://core.telegram.org/bots/api): it polls for
// updates, normalises them, and sends one message per Send.
//
// It splits, retries, paces and remembers nothing: that is the gateway's. It receives by its own getUpdates
// loop over raw JSON, so that an update is confirmed only after the journal has it and one odd update cannot
// block the rest; go-telegram-bot-api carries the calls that are not hot, the uploads, errors and keyboards.
//
// Run owns all goroutines of the package: the loop itself and a few short calls that answer button presses.
package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"parley/channels"
)

// Network is the name of the network in addresses and in channels[].type.
const Network channels.Network = "telegram"

// Limits of the Bot API, https://core.telegram.org/bots/api#sendmessage, #senddocument, #getfile.
const (
	maxText     = 4096     // UTF-16 units after the markup is parsed
	maxUpload   = 50 << 20 // bytes
	maxDownload = 20 << 20 // bytes
	maxCallback = 64       // bytes of an action's value
)

var (
	// tokenFormat also keeps a pasted blank, newline or slash out of the request path.
	tokenFormat = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)
	idFormat    = regexp.MustCompile(`^-?[0-9]{1,20}$`)
)

// Options is a telegram section of the configuration.
type Options struct {
	Token  Secret `yaml:"token" secret:"true" required:"true" doc:"Bot token from @BotFather." example:"${TELEGRAM_TOKEN}"`
	APIURL string `yaml:"api_url" doc:"Another Bot API server, without /bot. Default: https://api.telegram.org." example:"http://127.0.0.1:8081"`
}

// Channel is one bot. It is safe for concurrent use.
type Channel struct {
	api   *api
	log   *slog.Logger
	clock channels.Clock
	self  atomic.Pointer[identity] // nil until getMe has answered
	own   *ownPosts
}

var (
	_ channels.Channel       = (*Channel)(nil)
	_ channels.Editor        = (*Channel)(nil)
	_ channels.Deleter       = (*Channel)(nil)
	_ channels.Typer         = (*Channel)(nil)
	_ channels.Reactor       = (*Channel)(nil)
	_ channels.Opener        = (*Channel)(nil)
	_ channels.MenuPublisher = (*Channel)(nil)
	_ channels.Checker       = (*Channel)(nil)
	_ channels.Describer     = (*Channel)(nil)
	_ channels.Accounter     = (*Channel)(nil)
)

// Factory is telegram's line in channels/all.
func Factory() channels.Factory { return channels.FactoryOf(Network, New) }

// New makes the channel; it does no IO. Its errors name every bad option.
func New(name string, o Options, d channels.Deps) (*Channel, error) {
	base, err := o.validate()
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	return &Channel{
		api:   newAPI(base, o.Token, d.HTTP),
		log:   d.Log.With("channel", name),
		clock: d.Clock,
		own:   newOwnPosts(),
	}, nil
}

// Validate says what of the options can be known to be wrong without asking Telegram.
func (o *Options) Validate() error {
	_, err := o.validate()
	return err
}

// CheckID says how an id of Telegram looks, if this is none: digits, for groups with a - before them.
func (o *Options) CheckID(id string) error {
	if !idFormat.MatchString(id) {
		return errors.New("must be Telegram's id, which is a number such as 123 (a group's begins with -); to find one, " +
			"have them write to the bot and look at parley pairing list")
	}
	return nil
}

func (o *Options) validate() (*url.URL, error) {
	var problems []error
	wrong := func(option, text string) {
		problems = append(problems, &channels.OptionError{Name: option, Err: errors.New(text)})
	}
	if o.Token == "" {
		wrong("token", "is missing: @BotFather gives one")
	} else if !tokenFormat.MatchString(o.Token.Reveal()) {
		wrong("token", "is not a bot token, which is a number, a colon and letters such as 123456:ABC-DEF: copy it whole from @BotFather")
	}
	raw := o.APIURL
	if raw == "" {
		raw = "https://api.telegram.org"
	}
	base, err := url.Parse(strings.TrimRight(raw, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") || base.RawQuery != "" || base.Fragment != "" {
		wrong("api_url", "must be an http or https address without query, such as https://api.telegram.org")
	}
	return base, errors.Join(problems...)
}

// Account is the bot's user id, empty until the first getMe.
func (c *Channel) Account() channels.AccountID {
	if self := c.self.Load(); self != nil {
		return self.account
	}
	return ""
}

// Traits are the Bot API's limits, and the pace that it bears.
func (c *Channel) Traits() channels.Traits {
	return channels.Traits{
		Unit:        channels.UTF16,
		MaxUnits:    maxText,
		Dialect:     channels.Telegram,
		Threads:     true,
		Buttons:     true,
		EditEvery:   1500 * time.Millisecond,
		EditGroup:   4 * time.Second,
		SendEvery:   time.Second,
		TypingEvery: 4 * time.Second, // an action shows for 5 s
		MaxFile:     maxUpload,
		MaxParts:    5,
	}
}

// identity is what getMe says about the bot.
type identity struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
	Name     string `json:"first_name"`
	ReadsAll bool   `json:"can_read_all_group_messages"`
	Joins    bool   `json:"can_join_groups"`

	account channels.AccountID
}

// whoami asks the network who the bot is and remembers it.
func (c *Channel) whoami(ctx context.Context) (*identity, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	t := &carrier{ctx: ctx, http: c.api.http}
	self, err := fetch[identity](t, c.api, "getMe", nil)
	if err != nil {
		err = c.api.fail("getMe", t, err)
		// Whoever says it, here it means a wrong token or a wrong api_url, and neither heals by waiting.
		if t.status == http.StatusUnauthorized || t.status == http.StatusNotFound {
			err = &channels.Error{Class: channels.Fatal, Err: fmt.Errorf("wrong token or wrong api_url: %w", err)}
		}
		return nil, err
	}
	if self.ID == 0 {
		return nil, errors.New("getMe answered without an id")
	}
	self.account = channels.AccountID(decimal(self.ID))
	c.self.Store(&self)
	return &self, nil
}
