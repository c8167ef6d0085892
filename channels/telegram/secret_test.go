package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"parley/channels"
	"parley/channels/channeltest"
)

func TestT12_TokenIsMaskedHoweverItIsShown(t *testing.T) {
	t.Parallel()
	o := Options{Token: testToken}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "options", o, "token", o.Token)
	asJSON, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{log.String(), string(asJSON), string(asYAML)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, o), fmt.Sprintf(verb, o.Token), fmt.Sprintf(verb, &o))
	}
	for _, s := range shown {
		if strings.Contains(s, "secretsecret") || strings.Contains(s, fmt.Sprintf("%x", "secret")) || strings.Contains(s, fmt.Sprintf("%X", "secret")) {
			t.Errorf("shown: %s", s)
		}
	}
	if o.Token.Reveal() != testToken {
		t.Error("lost")
	}
}

func TestOptionsAreReadFromYAML(t *testing.T) {
	t.Parallel()
	o := Factory().Options()
	d := yaml.NewDecoder(strings.NewReader("token: 1:abc\napi_url: http://127.0.0.1:8081/\n"))
	d.KnownFields(true)
	if err := d.Decode(o); err != nil {
		t.Fatal(err)
	}
	ch, err := Factory().New("tg", o, channels.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if c := ch.(*Channel); c.api.token != "1:abc" || c.api.base.String() != "http://127.0.0.1:8081" {
		t.Errorf("%+v", c.api)
	}
}

func TestBadOptionsAreNamedAllAtOnceWithoutTheToken(t *testing.T) {
	t.Parallel()
	_, err := Factory().New("tg", &Options{Token: "1:secret secret", APIURL: "ftp://x"}, channels.Deps{Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "token") || !strings.Contains(err.Error(), "api_url") || strings.Contains(err.Error(), "1:secret") {
		t.Errorf("%v", err)
	}
	if ch, err := Factory().New("tg", &Options{}, channels.Deps{Log: slog.New(slog.DiscardHandler)}); err == nil || ch != nil {
		t.Errorf("%v, %v", ch, err)
	}
}

// blabbing fails with everything that an error can say about a request.
type blabbing struct{}

func (blabbing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("cannot %s %s %s", r.Method, r.URL, r.URL.Path)
}

func TestT12_NoErrorShowsTheToken(t *testing.T) {
	t.Parallel()
	echo := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"ok":false,"error_code":400,"description":"Bad Request: no %s here"}`, r.URL.Path)
	}))
	moving := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Referer") != "" || strings.HasPrefix(r.URL.Path, "/elsewhere") {
			t.Error("a redirect was followed")
		}
		http.Redirect(w, r, "/elsewhere"+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	blab, logs := newChannel(t, "http://bot.example", &http.Client{Transport: blabbing{}})
	for _, c := range []*Channel{echo, moving, blab} {
		for name, err := range everyCall(t.Context(), c) {
			if err == nil {
				t.Errorf("%s succeeded", name)
				continue
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if s := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(s, "secretsecret") {
					t.Errorf("%s: %s", name, s)
				}
			}
		}
		for _, f := range c.Check(t.Context()) {
			if strings.Contains(f.What+f.Hint, "secretsecret") {
				t.Errorf("finding: %+v", f)
			}
		}
	}
	if strings.Contains(logs.String(), "secretsecret") {
		t.Error("token in log")
	}
}

func everyCall(ctx context.Context, c *Channel) map[string]error {
	_, send := c.Send(ctx, channels.Post{To: dm(), Text: "x"})
	_, upload := c.Send(ctx, channels.Post{To: dm(), Files: []channels.File{channeltest.Outgoing("f", "", []byte("abc"))}})
	_, open := c.Open(ctx, channels.Attachment{ID: "f"})
	_, download := c.api.download(ctx, "documents/f", 10)
	_, me := c.whoami(ctx)
	return map[string]error{
		"send": send, "upload": upload, "open": open, "download": download, "getMe": me,
		"edit":   c.Edit(ctx, "5", channels.Post{To: dm(), Text: "x"}),
		"delete": c.Delete(ctx, dm(), "5"),
		"react":  c.React(ctx, dm(), "5", "👍"),
		"typing": c.ShowTyping(ctx, dm()),
		"menu":   c.PublishMenu(ctx, nil),
	}
}
