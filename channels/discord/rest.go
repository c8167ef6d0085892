package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/workspace/clip"
)

const (
	callTimeout   = 30 * time.Second
	uploadTimeout = 5 * time.Minute
	maxAnswer     = 32 << 20 // bytes
	banPause      = 5 * time.Minute
)

// rest makes calls through discordgo, without its waits: it keeps a bucket for every path and sleeps in it, whatever the
// context says. A 429 is classified instead, and the core waits.
type rest struct {
	base   *url.URL
	token  channels.Secret
	sdk    *discordgo.Session
	files  *http.Client
	redact *strings.Replacer
}

func newREST(base *url.URL, token channels.Secret, c *http.Client) (*rest, error) {
	if c == nil {
		c = http.DefaultClient
	}
	sdk, err := discordgo.New("Bot " + token.Reveal())
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a redirect would take the token along
	sdk.Client = &http.Client{Transport: tap{c.Transport}, CheckRedirect: stay}
	sdk.ShouldRetryOnRateLimit, sdk.MaxRestRetries, sdk.StateEnabled = false, 0, false
	sdk.LogLevel = -1 // it would write to the process's own output
	sdk.UserAgent = "DiscordBot (https://github.com/bwmarrin/discordgo, " + discordgo.VERSION + ") Parley"
	return &rest{
		base: base, token: token, sdk: sdk, files: &http.Client{Transport: c.Transport, CheckRedirect: stay},
		redact: strings.NewReplacer(token.Reveal(), "[secret]", url.QueryEscape(token.Reveal()), "[secret]"),
	}, nil
}

func (r *rest) get(ctx context.Context, act, path string, into any) error {
	return r.call(ctx, act, http.MethodGet, path, nil, into)
}

// call sends body as JSON and decodes the answer; both may be nil. act says in an error what was tried.
func (r *rest) call(ctx context.Context, act, method, path string, body, into any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return bad("%s: encode: %v", act, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.do(ctx, act, method, path, "application/json", raw, into)
}

func (r *rest) do(ctx context.Context, act, method, path, kind string, body []byte, into any) error {
	p := &progress{}
	own := discordgo.NewRatelimiter().LockBucket("") // of this call alone
	raw, err := r.sdk.RequestWithLockedBucket(method, r.base.String()+path, kind, body, own, 0, discordgo.WithContext(p.watch(ctx)))
	if err == nil && into != nil {
		if err = json.Unmarshal(raw, into); err != nil {
			err = fmt.Errorf("read the answer: %w", err)
		}
	}
	return r.fail(act, p, err)
}

// progress is how far a request came.
type progress struct {
	channels.Way
	status int // 0: no answer came
	header http.Header
}

type progressKey struct{}

func (p *progress) watch(ctx context.Context) context.Context {
	return p.Watch(context.WithValue(ctx, progressKey{}, p))
}

// tap notes the answer in the request's progress, and bounds it.
type tap struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tap) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if p, ok := req.Context().Value(progressKey{}).(*progress); ok {
		p.status, p.header = resp.StatusCode, resp.Header
	}
	// The SDK reads the limits for its own waits, and fails a call that was done where it cannot read one of them.
	resp.Header = http.Header{"Content-Type": resp.Header["Content-Type"]}
	resp.Body = bounded{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

type bounded struct {
	io.Reader
	io.Closer
}

// refusal is what Discord answered instead of doing it.
type refusal struct {
	status, code int // HTTP's, and https://discord.com/developers/docs/topics/opcodes-and-status-codes#json
	text         string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d (%d) %s", r.status, r.code, r.text) }

func refusalOf(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// says tells whether err is a refusal with one of the codes.
func says(err error, codes ...int) bool {
	r := refusalOf(err)
	if r == nil {
		return false
	}
	for _, c := range codes {
		if r.code == c {
			return true
		}
	}
	return false
}

// Codes that decide something here.
const (
	unknownChannel     = 10003
	unknownGuild       = 10004
	unknownMember      = 10007
	unknownMessage     = 10008
	unknownWebhook     = 10015
	unknownInteraction = 10062
	missingAccess      = 50001
	notAuthor          = 50005
	systemMessage      = 50021
	invalidToken       = 50027 // of an interaction
	answeredBefore     = 40060
)

// fail classifies what went wrong with a call and cleans it of tokens; nil stays nil.
func (r *rest) fail(act string, p *progress, err error) error {
	if err == nil {
		return nil
	}
	e := &channels.Error{}
	var slow *discordgo.RateLimitError
	var said *discordgo.RESTError
	switch {
	case errors.As(err, &slow) || p.status == http.StatusTooManyRequests:
		e.Class, e.After, e.Global = channels.Retry, p.after(slow), p.header.Get("X-RateLimit-Global") != ""
		err = &refusal{status: p.status, text: "rate limited"}
		if slow == nil { // the CDN's page: the address itself is held
			e.Global = true
			if e.After == 0 && strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
				e.After = banPause
			}
			err = &refusal{status: p.status, text: "rate limited, with a page that is not Discord's API"}
		}
	case errors.As(err, &said) && said.Message != nil:
		err = &refusal{status: p.status, code: said.Message.Code, text: clip.Runes(string(said.ResponseBody), 300)}
		e.Class = classify(err.(*refusal))
	case p.status != 0:
		e.Class = classifyForeign(p.status)
		err = &refusal{status: p.status, text: "not the API's answer"}
	case p.Unsent():
		e.Class = channels.Retry
	default:
		e.Class = channels.Unknown
	}
	e.Err = fmt.Errorf("%s: %w", act, r.clean(err))
	return e
}

// after is how long Discord asks to wait.
func (p *progress) after(slow *discordgo.RateLimitError) time.Duration {
	var wait time.Duration
	if slow != nil && slow.RateLimit != nil && slow.TooManyRequests != nil {
		wait = slow.RetryAfter
	}
	if s, err := strconv.ParseFloat(p.header.Get("Retry-After"), 64); err == nil && wait == 0 {
		wait = time.Duration(s * float64(time.Second))
	}
	return wait
}

// clean keeps the chain for errors.Is as long as no link of it shows an address, which may hold an interaction's token.
func (r *rest) clean(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if text := err.Error(); r.redact.Replace(text) != text {
		return errors.New(r.redact.Replace(text))
	}
	return err
}

// classify judges a refusal in Discord's own words.
func classify(r *refusal) channels.Class {
	switch {
	case r.code == notAuthor || r.code == systemMessage || r.code == invalidToken:
		return channels.BadMessage
	case r.status == http.StatusUnauthorized:
		return channels.Fatal
	case r.status == http.StatusForbidden || r.code == unknownChannel || r.code == unknownGuild:
		return channels.PeerGone
	case r.status >= 500:
		return channels.Unknown
	case r.status >= 400:
		return channels.BadMessage
	}
	return channels.Unknown
}

// classifyForeign judges an answer that is not the API's: a proxy's page, or an answer that was cut.
func classifyForeign(status int) channels.Class {
	switch {
	case status == http.StatusUnauthorized:
		return channels.Fatal
	case status == http.StatusRequestEntityTooLarge:
		return channels.BadMessage
	case status >= 300 && status < 500:
		return channels.Retry // it stood before the API, which answers in JSON
	}
	return channels.Unknown
}

func bad(format string, args ...any) error {
	return &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf(format, args...)}
}
