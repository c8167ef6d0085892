// The log: without credentials and control characters, each value within a length.

package daemon

import (
	"context"
	"fmt"
	"log/slog"

	"parley/cmd/parley/internal/cli"
	"parley/workspace/clip"
)

const maxLogged = 4096 // bytes of one value in the log

// logHandler hides every credential by its value, makes control characters visible and caps what is long (T12). What
// was a secret once stays one until the process ends.
type logHandler struct {
	slog.Handler
	hide *redactor
}

// keep stands behind the hiding, beside what is written.
func newLogHandler(to Log, hide func(string) string, keep func(slog.Handler) slog.Handler) slog.Handler {
	o := &slog.HandlerOptions{Level: to.Least}
	h := logHandler{slog.NewTextHandler(to.To, o), &redactor{hide}}
	if to.JSON {
		h.Handler = slog.NewJSONHandler(to.To, o)
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

// redactor makes what is logged fit for a log.
type redactor struct{ hide func(string) string }

func (r *redactor) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		if a.Key == "hint" {
			v = slog.StringValue(cli.Hinted(v.String()))
		}
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
	s = cli.Visible(r.hide(s))
	if len(s) > maxLogged {
		s = clip.Bytes(s, maxLogged) + fmt.Sprintf("… (%d bytes more)", len(s)-maxLogged)
	}
	return s
}
