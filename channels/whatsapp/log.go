package whatsapp

import (
	"fmt"
	"log/slog"

	signallog "go.mau.fi/libsignal/logger"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley/workspace/clip"
	"parley/workspace/lazy"
)

// longNumber is a phone number, a LID, or a group's id; secretText what may be a key in hex or base64.
var (
	longNumber = lazy.Regexp(`\d{7,}`)
	secretText = lazy.Regexp(`[A-Za-z0-9+/]{40,}={0,2}`)
)

// logger gives whatsmeow's lines to slog, a level quieter than it says them: what matters is told as a state. It leaves out
// the protocol's own traffic, which is everybody's names and numbers.
type logger struct {
	log       *slog.Logger
	sent, got func(stanza string) // nil: nobody keeps account
}

// Sub is the same logger, or none for what goes over the wire.
func (l logger) Sub(module string) waLog.Logger {
	switch {
	case l.sent != nil && module == "Send":
		return traffic{l, l.sent}
	case l.got != nil && module == "Recv":
		return traffic{l, l.got}
	}
	switch module {
	case "Recv", "Send", "Socket", "AppState", "QRChannel":
		return waLog.Noop
	}
	return l
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Warn("whatsmeow", "said", said{format, args})
}
func (l logger) Warnf(format string, args ...any) {
	l.log.Debug("whatsmeow", "said", said{format, args})
}
func (l logger) Infof(format string, args ...any) {
	l.log.Debug("whatsmeow", "said", said{format, args})
}
func (l logger) Debugf(string, ...any) {}

// said is put into words only if somebody logs it.
type said struct {
	format string
	args   []any
}

// LogValue is the masked text.
func (s said) LogValue() slog.Value { return slog.StringValue(mask(fmt.Sprintf(s.format, s.args...))) }

// hush keeps libsignal, whose logger is one for the process, from writing to standard output. It does nothing when a logger
// is set, so that channels may be made side by side.
func hush() {
	if signallog.Logger == nil {
		var none signallog.Loggable = mute{}
		signallog.Setup(&none)
	}
}

type mute struct{}

func (mute) Debug(string, string)   {}
func (mute) Info(string, string)    {}
func (mute) Warning(string, string) {}
func (mute) Error(string, string)   {}
func (mute) Configure(string)       {}

// mask shortens numbers to their last three digits and takes out what may be a key.
func mask(text string) string {
	text = longNumber().ReplaceAllStringFunc(clip.Runes(text, 500), func(n string) string { return "…" + n[len(n)-3:] })
	return secretText().ReplaceAllString(text, "[…]")
}
