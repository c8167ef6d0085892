package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const (
	callTimeout = 20 * time.Second
	maxAnswer   = 8 << 20 // bytes of an answer that is read
)

// attempt is what is known of a call's way: whether Slack can have seen it.
type attempt struct{ wrote atomic.Bool }

// watched is a context in which calls note their way.
func watched(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { a.wrote.Store(true) }}), a
}

// api is slack-go's client. It keeps nothing, so one is made per call.
func (c *Channel) api() *slackgo.Client {
	return slackgo.New(c.opts.BotToken.Reveal(), slackgo.OptionAPIURL(c.base.String()), slackgo.OptionHTTPClient(bounded{c.http}),
		slackgo.OptionAppLevelToken(c.opts.AppToken.Reveal()))
}

// bounded cuts answers that are larger than any of Slack's.
type bounded struct{ http *http.Client }

// Do implements slack-go's httpClient.
func (b bounded) Do(r *http.Request) (*http.Response, error) {
	resp, err := b.http.Do(r)
	if err == nil {
		whole(resp)
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// do runs one call of slack-go with a time limit, and classifies its failure.
func (c *Channel) do(ctx context.Context, method string, f func(ctx context.Context, api *slackgo.Client) error) error {
	ctx, a := watched(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.fail(method, a, f(ctx, c.api()))
}

// read calls a method that changes nothing and decodes its answer from raw JSON.
func read[T any](ctx context.Context, c *Channel, method string, args url.Values) (T, error) {
	var out T
	ctx, a := watched(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := c.post(ctx, method, args)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, c.fail(method, a, err)
}

func (c *Channel) post(ctx context.Context, method string, args url.Values) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+method, strings.NewReader(args.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+c.opts.BotToken.Reveal())
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := status(resp); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	var said slackgo.SlackResponse
	if err := json.Unmarshal(raw, &said); err != nil {
		return nil, err
	}
	return raw, said.Err()
}

// whole makes the wait that Slack asks for one of whole seconds: the SDK takes anything else for an answer that cannot be read,
// with which nobody knows whether the call was done.
func whole(resp *http.Response) {
	said := resp.Header.Get("Retry-After")
	if resp.StatusCode != http.StatusTooManyRequests {
		return
	}
	wait := 1.0
	if s, err := strconv.ParseFloat(said, 64); err == nil && s >= 0 && s < 1<<30 {
		wait = s
	} else if at, err := http.ParseTime(said); err == nil { // RFC 9110, section 10.2.3
		wait = max(time.Until(at).Seconds(), 0)
	}
	resp.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait))))
}

// status is the error of an answer that is not 200.
func status(resp *http.Response) error {
	whole(resp)
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && resp.StatusCode == http.StatusTooManyRequests {
		return &slackgo.RateLimitedError{RetryAfter: time.Duration(seconds) * time.Second}
	}
	return slackgo.StatusCodeError{Code: resp.StatusCode, Status: resp.Status}
}

// fail classifies what went wrong with a call and cleans it of secrets; nil stays nil.
func (c *Channel) fail(method string, a *attempt, err error) error {
	if err == nil {
		return nil
	}
	e := &channels.Error{Class: classify(a, err)}
	var slow *slackgo.RateLimitedError
	if errors.As(err, &slow) {
		e.After = slow.RetryAfter
	}
	e.Err = fmt.Errorf("slack %s: %w", method, c.cleaned(err))
	if code := codeOf(err); code != "" {
		if r := c.live.Load(); r != nil {
			r.refused(method, code, err)
		}
	}
	return e
}

// cleaned keeps the chain for errors.Is as long as no link of it shows a secret. An address is not shown at all: those of
// answers are secrets themselves.
func (c *Channel) cleaned(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var said slackgo.SlackErrorResponse
	if errors.As(err, &said) && said.Needed != "" {
		err = fmt.Errorf("%w: the app needs the scope %s", err, said.Needed)
	}
	if text := err.Error(); c.clean.Replace(text) != text {
		return errors.New(c.clean.Replace(text))
	}
	return err
}

// classify judges a failed call.
func classify(a *attempt, err error) channels.Class {
	var slow *slackgo.RateLimitedError
	var code slackgo.StatusCodeError
	switch {
	case errors.As(err, &slow):
		return channels.Retry
	case codeOf(err) != "":
		return classOf(codeOf(err))
	case errors.As(err, &code):
		return classifyForeign(code.Code)
	case !a.wrote.Load():
		return channels.Retry
	}
	return channels.Unknown
}

// classifyForeign judges an answer that is not the Web API's: a proxy's page, or the front end's in trouble.
func classifyForeign(status int) channels.Class {
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return channels.BadMessage
	case status >= 300 && status < 500:
		return channels.Retry // it stood before the Web API, which answers 200
	}
	return channels.Unknown
}

// codeOf is Slack's own word for a failure; empty: it said none.
func codeOf(err error) string {
	var said slackgo.SlackErrorResponse
	if errors.As(err, &said) {
		return said.Err
	}
	return ""
}

// classOf judges Slack's words (the error lists of the methods at https://docs.slack.dev/reference/methods). What is not
// listed was refused before it was done.
func classOf(code string) channels.Class {
	switch code {
	case "invalid_auth", "account_inactive", "token_revoked", "token_expired", "not_authed", "not_allowed_token_type", "org_login_required", "app_not_installed":
		return channels.Fatal
	case "ratelimited", "rate_limited", "message_limit_exceeded", "team_added_to_org", "service_unavailable", "accesslimited":
		return channels.Retry
	case "channel_not_found", "not_in_channel", "is_archived", "user_not_found", "user_disabled", "users_not_found", "cannot_dm_bot", "messages_tab_disabled",
		"restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel", "restricted_action_non_threadable_channel",
		"restricted_action_thread_locked", "is_inactive", "team_not_found", "team_access_not_granted", "no_permission", "user_not_in_channel", "ekm_access_denied":
		return channels.PeerGone
	case "fatal_error", "internal_error", "request_timeout", "duplicate_message_not_found", "duplicate_client_msg_id":
		return channels.Unknown // it may have been done: now, or by the try before
	}
	return channels.BadMessage
}

// says tells whether err is a refusal by Slack with one of these words.
func says(err error, codes ...string) bool {
	code := codeOf(err)
	for _, c := range codes {
		if code == c {
			return true
		}
	}
	return false
}

func bad(format string, args ...any) error {
	return &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf(format, args...)}
}
