package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"parley/configs"
	"parley/gateway"
)

const (
	maxLogged = 4096 // bytes of one value in the log
	minSecret = 6    // a shorter one would hide pieces of innocent words
	masked    = "[secret]"
)

// logHandler hides every credential by its value, makes control characters visible and caps what is long (T12). What
// was a secret once stays one until the process ends.
type logHandler struct {
	slog.Handler
	hide *redactor
}

// keep stands behind the hiding, beside what is written to w.
func newLogHandler(w io.Writer, current func() *configs.Config, least slog.Level, asJSON bool, keep func(slog.Handler) slog.Handler) slog.Handler {
	o := &slog.HandlerOptions{Level: least}
	h := logHandler{slog.NewTextHandler(w, o), &redactor{current: current}}
	if asJSON {
		h.Handler = slog.NewJSONHandler(w, o)
	}
	h.Handler = keep(h.Handler)
	return h
}

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.hide.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.hide.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.hide.attr(a)
	}
	return logHandler{h.Handler.WithAttrs(clean), h.hide}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name), h.hide}
}

// redactor knows the secrets of every configuration that was in force.
type redactor struct {
	current func() *configs.Config

	mu      sync.Mutex
	of      *configs.Config
	token   bool // the gateway's own was among them
	known   []string
	replace *strings.Replacer
}

func (r *redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(r.text(v.String()))
	case slog.KindGroup:
		var list []slog.Attr
		for _, a := range v.Group() {
			list = append(list, r.attr(a))
		}
		v = slog.GroupValue(list...)
	case slog.KindAny:
		if v.Any() != nil {
			v = slog.StringValue(r.text(fmt.Sprint(v.Any())))
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}

func (r *redactor) text(s string) string {
	s = visible(r.secrets().Replace(s))
	if len(s) > maxLogged {
		s = strings.ToValidUTF8(s[:maxLogged], "") + fmt.Sprintf("… (%d bytes more)", len(s)-maxLogged)
	}
	return s
}

// secrets are gathered when the configuration changes, and until the gateway's token was made.
func (r *redactor) secrets() *strings.Replacer {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.current()
	if r.replace != nil && r.of == c && r.token {
		return r.replace
	}
	found := c.Secrets()
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PARLEY_POSTGRES", "PARLEY_TOKEN"} {
		found = append(found, os.Getenv(name))
	}
	token, err := gateway.Token(c)
	r.token = err == nil && token != ""
	for _, s := range append(found, token) {
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			if len(form) >= minSecret && !slices.Contains(r.known, form) {
				r.known = append(r.known, form)
			}
		}
	}
	slices.SortFunc(r.known, func(a, b string) int { return len(b) - len(a) }) // a secret may hold another
	var pairs []string
	for _, s := range r.known {
		pairs = append(pairs, s, masked)
	}
	r.of, r.replace = c, strings.NewReplacer(pairs...)
	return r.replace
}
