// Package slack is the adapter for Slack: it takes events over Socket Mode or the HTTP Events API
// (https://docs.slack.dev/apis/events-api), normalises them, and sends one message per Send through the Web API.
//
// It splits, retries, paces and remembers nothing: that is the gateway's. slack-go carries the calls that write; the
// socket is read here, since the library's client retries for ever what cannot heal, drops the reason of a disconnect and
// acknowledges behind the caller's back; what is read (history, replies) is decoded from raw JSON, so that one odd message
// cannot hide the others.
//
// An envelope is acknowledged after Intake.Receive has returned: the message is then durable. What is not acknowledged in
// time Slack offers again, under another envelope id; the journal knows it by channel and ts.
//
// Run owns all goroutines of the package: per socket its reader and the backfill of what was missed.
package slack

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
const Network channels.Network = "slack"

// Limits of Slack, https://docs.slack.dev/reference/methods/chat.postMessage, /block-kit/blocks/markdown-block.
const (
	maxText  = 12_000  // of markdown_text; "characters" in the documents, here counted as UTF-16 units, the stricter reading
	maxValue = 2000    // bytes of a button's value
	maxFile  = 1 << 30 // bytes
)

var idFormat = regexp.MustCompile(`^[A-Z][A-Z0-9]{1,30}$`)

// Options is a slack section of the configuration.
type Options struct {
	Mode          string          `yaml:"mode" default:"socket" enum:"socket|http" doc:"How events come: over a socket that the gateway opens, or by HTTP from Slack to /channels/<name>/events."`
	BotToken      channels.Secret `yaml:"bot_token" secret:"true" required:"true" doc:"Bot token, xoxb-…: OAuth & Permissions, after the app is installed." example:"${SLACK_BOT_TOKEN}"`
	AppToken      channels.Secret `yaml:"app_token" secret:"true" doc:"App-level token, xapp-…, with connections:write. Mode socket needs it." example:"${SLACK_APP_TOKEN}"`
	SigningSecret channels.Secret `yaml:"signing_secret" secret:"true" doc:"Signing secret: Basic Information. Mode http needs it." example:"${SLACK_SIGNING_SECRET}"`
	APIURL        string          `yaml:"api_url" doc:"Another Web API, with /api/ at its end. Default: https://slack.com/api/." example:"http://127.0.0.1:8081/api/"`
}

// Channel is the app in one workspace. It is safe for concurrent use.
type Channel struct {
	opts         Options
	base         *url.URL
	http         *http.Client // the shared one, but it follows no redirect: a token goes nowhere else
	log          *slog.Logger
	clock        channels.Clock
	clean        *strings.Replacer
	apps         *appRegistry
	self         atomic.Pointer[identity] // nil until auth.test has answered
	live         atomic.Pointer[receiver] // nil unless Run is at work
	names        *names
	marks        *marks
	legacyServer atomic.Bool // the Web API knows no Markdown
	pace         pace
}

var (
	_ channels.Channel   = (*Channel)(nil)
	_ channels.Editor    = (*Channel)(nil)
	_ channels.Deleter   = (*Channel)(nil)
	_ channels.Streamer  = (*Channel)(nil)
	_ channels.Finder    = (*Channel)(nil)
	_ channels.Reactor   = (*Channel)(nil)
	_ channels.Opener    = (*Channel)(nil)
	_ channels.Historian = (*Channel)(nil)
	_ channels.Checker   = (*Channel)(nil)
	_ channels.Mounter   = (*Channel)(nil)
	_ channels.Describer = (*Channel)(nil)
	_ channels.Accounter = (*Channel)(nil)
)

// Factory is slack's line in channels/all. Channels of one factory that have one app in several workspaces hand each other
// what Slack gave to the wrong one.
func Factory() channels.Factory {
	h := &appRegistry{}
	f := channels.FactoryOf(Network, func(name string, o Options, d channels.Deps) (*Channel, error) { return newChannel(name, o, d, h) })
	f.Manifest = Manifest
	return f
}

// newChannel makes the channel; it does no IO. Its errors name every bad option.
func newChannel(name string, o Options, d channels.Deps, h *appRegistry) (*Channel, error) {
	base, err := o.validate()
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	stay := *d.HTTP
	stay.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Channel{opts: o, base: base, http: &stay, log: d.Log.With("channel", name), clock: d.Clock, clean: o.redactor(), apps: h,
		names: newNames(), marks: newMarks(), pace: usualPace()}
	h.add(c)
	return c, nil
}

// Validate says what of the options can be known to be wrong without asking Slack.
func (o *Options) Validate() error {
	_, err := o.validate()
	return err
}

// CheckID says how an id of Slack looks, if this is none.
func (o *Options) CheckID(id string) error {
	if !idFormat.MatchString(id) {
		return errors.New("must be Slack's id, which is capital letters and digits: U… for people, C…, G… or D… for conversations (in Slack: the profile's or channel's details, at the bottom)")
	}
	return nil
}

// elsewhere says that another server stands in Slack's place, whose tokens may look otherwise.
func (o *Options) elsewhere() bool {
	return o.APIURL != "" && !strings.HasPrefix(o.APIURL, "https://slack.com/")
}

func (o *Options) validate() (*url.URL, error) {
	var problems []error
	wrong := func(option, text string) {
		problems = append(problems, &channels.OptionError{Name: option, Err: errors.New(text)})
	}
	bot, app := o.BotToken.Reveal(), o.AppToken.Reveal()
	switch {
	case bot == "":
		wrong("bot_token", "is missing: install the app, then copy it from OAuth & Permissions")
	case strings.HasPrefix(bot, "xapp-"):
		wrong("bot_token", "is an app-level token (xapp-): bot_token and app_token are swapped")
	case !o.elsewhere() && !strings.HasPrefix(bot, "xoxb-") || strings.ContainsAny(bot, " \n\t"):
		wrong("bot_token", "is not a bot token, which begins with xoxb-: copy it whole from OAuth & Permissions")
	}
	switch o.Mode {
	case "", "socket":
		switch {
		case app == "":
			wrong("app_token", "is missing, which mode socket needs: Basic Information, App-Level Tokens, with connections:write")
		case strings.HasPrefix(app, "xoxb-"):
			wrong("app_token", "is a bot token (xoxb-): bot_token and app_token are swapped")
		case !o.elsewhere() && !strings.HasPrefix(app, "xapp-") || strings.ContainsAny(app, " \n\t"):
			wrong("app_token", "is not an app-level token, which begins with xapp-: copy it whole from Basic Information")
		}
	case "http":
		if len(o.SigningSecret) < 8 {
			wrong("signing_secret", "is missing, which mode http needs: without it anybody could write in Slack's name (Basic Information, Signing Secret)")
		}
	default:
		wrong("mode", "must be socket or http")
	}
	raw := o.APIURL
	if raw == "" {
		raw = "https://slack.com/api/"
	}
	base, err := url.Parse(strings.TrimRight(raw, "/") + "/")
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") || base.RawQuery != "" || base.Fragment != "" {
		wrong("api_url", "must be an http or https address without query, such as https://slack.com/api/")
	}
	return base, errors.Join(problems...)
}

// Account is the workspace and the bot's user in it, empty until the first auth.test.
func (c *Channel) Account() channels.AccountID {
	if self := c.self.Load(); self != nil {
		return self.account
	}
	return ""
}

// Traits are Slack's limits, and the pace that it bears: chat.update takes 50 calls a minute.
func (c *Channel) Traits() channels.Traits {
	return channels.Traits{
		Unit: channels.UTF16, MaxUnits: maxText, Dialect: channels.Slack,
		Threads: true, Branches: true, Buttons: true, Handles: true, Ack: "👀",
		EditEvery: 1500 * time.Millisecond, EditGroup: 3 * time.Second, SendEvery: time.Second,
		MaxFile: maxFile, MaxParts: 5, Backfill: true,
	}
}

// identity is what auth.test says.
type identity struct {
	team, teamName string
	user, name     string
	bot            string
	enterprise     string // the organisation of the workspace; empty: none
	account        channels.AccountID
	missing        []string // scopes
}

// has says whether an event for an installation of the app is for this one.
func (s *identity) has(at installation) bool {
	return at.team != "" && at.team == s.team || at.user != "" && at.user == s.user || at.enterprise != "" && (at.enterprise == s.enterprise || at.enterprise == s.team)
}

// whoami asks who the bot is and remembers it.
func (c *Channel) whoami(ctx context.Context) (*identity, error) {
	ctx, a := watched(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := c.api().AuthTestContext(ctx)
	if err != nil {
		return nil, c.fail("auth.test", a, err)
	}
	if got.TeamID == "" || got.UserID == "" {
		return nil, errors.New("auth.test answered without a workspace or user")
	}
	self := &identity{team: got.TeamID, teamName: got.Team, user: got.UserID, name: got.User, bot: got.BotID, enterprise: got.EnterpriseID,
		account: channels.AccountID(got.TeamID + "/" + got.UserID), missing: missingScopes(got.Header)}
	c.self.Store(self)
	return self, nil
}
