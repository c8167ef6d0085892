package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/channels"
)

const (
	callTimeout   = 30 * time.Second // of a call that waits for nothing
	uploadTimeout = 5 * time.Minute  // 50 MB over a slow line
	maxAnswer     = 32 << 20         // bytes of one answer; 100 updates are far below
)

// api makes calls. Every call goes through one carrier, which knows how far the request came; every error
// that leaves is classified and without the token.
type api struct {
	http   *http.Client
	base   *url.URL
	token  Secret
	redact *strings.Replacer
	sdk    string // endpoint in the SDK's form, with %s for token and method

	poll      atomic.Pointer[context.CancelCauseFunc] // ends the poll under way; nil: there is none
	suspected atomic.Bool                             // the next poll asks without waiting
}

// suspect ends the poll under way when another call was refused as if the token were: the next poll, which does not
// wait, tells at once what an empty one would have kept to itself for most of a minute.
func (a *api) suspect(method string, class channels.Class) {
	if class != channels.Fatal || method == "getUpdates" {
		return
	}
	a.suspected.Store(true)
	if end := a.poll.Load(); end != nil {
		(*end)(errSuspect)
	}
}

func newAPI(base *url.URL, token Secret, c *http.Client) *api {
	if c == nil {
		c = http.DefaultClient
	}
	own := *c // shares the transport, so the connections
	// A redirect would carry the token to another host, in the Referer.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &api{
		http:   &own,
		base:   base,
		token:  token,
		redact: redactor(token),
		sdk:    strings.ReplaceAll(base.String(), "%", "%%") + "/bot%s/%s",
	}
}

// answer is what every method returns: https://core.telegram.org/bots/api#making-requests.
type answer[T any] struct {
	OK          bool                        `json:"ok"`
	Result      T                           `json:"result"`
	ErrorCode   int                         `json:"error_code"`
	Description string                      `json:"description"`
	Parameters  tgbotapi.ResponseParameters `json:"parameters"`
}

// post makes a hot call without the SDK, whose two passes of reflection and URL building per call cost more
// than the rest of an echo. The answer is read whole, so that the connection is used again.
func post[T any](ctx context.Context, a *api, method string, body form) (T, error) {
	t := &carrier{ctx: ctx, http: a.http}
	out, err := fetch[T](t, a, method, body)
	return out, a.fail(method, t, err)
}

func fetch[T any](t *carrier, a *api, method string, body form) (T, error) {
	var out answer[T]
	u := *a.base
	u.Path += "/bot" + a.token.Reveal() + "/" + method
	req := &http.Request{
		Method: http.MethodPost, URL: &u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		Body:          body.reader(),
		GetBody:       func() (io.ReadCloser, error) { return body.reader(), nil },
		ContentLength: int64(len(body)),
	}
	resp, err := t.Do(req)
	if err != nil {
		return out.Result, err
	}
	defer resp.Body.Close()
	raw, err := readAll(resp)
	if err != nil {
		return out.Result, err
	}
	// An answer that says no may lack the result's type.
	if err := json.Unmarshal(raw, &out); err != nil && (out.OK || out.Description == "") {
		return out.Result, fmt.Errorf("read the answer: %w", err)
	}
	if !out.OK {
		return out.Result, &tgbotapi.Error{Code: out.ErrorCode, Message: out.Description, ResponseParameters: out.Parameters}
	}
	return out.Result, nil
}

func readAll(resp *http.Response) ([]byte, error) {
	if n := resp.ContentLength; n >= 0 && n <= maxAnswer {
		raw := make([]byte, n)
		if _, err := io.ReadFull(resp.Body, raw); err != nil {
			return nil, err
		}
		return raw, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(raw) > maxAnswer {
		err = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return raw, err
}

// request makes any other call through the SDK. into may be nil.
func (a *api) request(ctx context.Context, method string, p tgbotapi.Params, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	t := &carrier{ctx: ctx, http: a.http}
	resp, err := a.bot(t).MakeRequest(method, p)
	if err == nil && into != nil {
		err = json.Unmarshal(resp.Result, into)
	}
	return a.fail(method, t, err)
}

// upload sends a file by multipart through the SDK.
func (a *api) upload(ctx context.Context, method string, p tgbotapi.Params, file tgbotapi.RequestFile, into any) error {
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	t := &carrier{ctx: ctx, http: a.http}
	resp, err := a.bot(t).UploadFiles(method, p, []tgbotapi.RequestFile{file})
	if err == nil {
		err = json.Unmarshal(resp.Result, into)
	}
	return a.fail(method, t, err)
}

// bot is the SDK for one call: the library has no contexts, so each call brings its own carrier. NewBotAPI is
// not used since it calls getMe.
func (a *api) bot(t *carrier) *tgbotapi.BotAPI {
	b := &tgbotapi.BotAPI{Token: a.token.Reveal(), Client: t}
	b.SetAPIEndpoint(a.sdk)
	return b
}

// carrier brings one call's context to the request and notes how far the request came. The context is in a
// struct only because the SDK's interface has no place for it.
type carrier struct {
	ctx  context.Context
	http *http.Client

	way    channels.Way
	status int // of the response, 0: none came
}

// Do is tgbotapi.HTTPClient.
func (t *carrier) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.http.Do(req.WithContext(t.way.Watch(t.ctx)))
	if err != nil {
		if req.Body != nil {
			req.Body.Close() // lets the SDK's writer of an upload go, whatever the transport did
		}
		return nil, err
	}
	t.status = resp.StatusCode
	resp.Body = drained{resp.Body}
	return resp, nil
}

// drained reads a body to its end before it is closed; otherwise the connection is thrown away.
type drained struct{ io.ReadCloser }

func (d drained) Close() error {
	_, _ = io.CopyN(io.Discard, d.ReadCloser, 64<<10) // best effort: what is longer costs its connection
	return d.ReadCloser.Close()
}

// form is an x-www-form-urlencoded body, in the order in which it was written.
type form []byte

func (f form) add(key, value string) form {
	if len(f) > 0 {
		f = append(f, '&')
	}
	f = append(f, key...)
	f = append(f, '=')
	return append(f, url.QueryEscape(value)...)
}

func (f form) reader() io.ReadCloser {
	if len(f) == 0 {
		return http.NoBody
	}
	return io.NopCloser(bytes.NewReader(f))
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
