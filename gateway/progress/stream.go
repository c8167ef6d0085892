// Answers on networks whose messages only grow.

package progress

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"parley/channels"
	"parley/channels/markup"
	"parley/gateway/delivery"
)

// growth is an answer on a network whose messages can be opened and then only grow. What is shown is the beginning of
// the rendered answer, whole lines and words of it; where what comes later would change what was shown, nothing more is,
// until the end gives the message its final text by an edit, as everywhere.
type growth struct {
	streamer channels.Streamer
	send     delivery.Starter // where no stream may be opened
	who      channels.UserID
	traits   channels.Traits

	mu     sync.Mutex
	opened channels.Stream
	shown  string
}

// open opens the message. Where the network allows no stream it is an ordinary one, which edits will fill.
func (g *growth) open(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	first := p
	first.Text, first.Plain, first.For = "", "", g.who
	st, err := g.streamer.Stream(ctx, first)
	if channels.ClassOf(err) == channels.BadMessage {
		return g.send(ctx, p)
	}
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = st
	return st.ID(), nil
}

func (g *growth) streams() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened != nil
}

// feed shows what has come since.
func (g *growth) feed(ctx context.Context, text string, log *slog.Logger) {
	g.mu.Lock()
	defer g.mu.Unlock()
	whole := settled(text)
	if whole == "" {
		return
	}
	spans := markup.Cut(whole, g.traits)
	if len(spans) == 0 {
		return
	}
	rendered, _ := markup.Render(whole, spans[0], g.traits.Dialect)
	fresh, ok := strings.CutPrefix(rendered, g.shown)
	if !ok || fresh == "" {
		return
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
	defer cancel()
	if err := g.opened.Append(call, fresh); err != nil {
		log.Debug("stream cannot grow", "err", err)
		return
	}
	g.shown = rendered
}

// close ends the stream; the message gets its final text by an edit.
func (g *growth) close(ctx context.Context, log *slog.Logger) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		return
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
	defer cancel()
	if err := g.opened.Close(call, ""); err != nil {
		log.Debug("stream cannot be closed", "err", err)
	}
	g.opened = nil
}

// settled is the beginning of a Markdown text whose rendering later text will hardly change: whole lines, and of the last
// one whole words up to the first mark that has no other half yet.
func settled(text string) string {
	end := strings.LastIndexByte(text, '\n') + 1
	if fenced := "\n" + text[:end]; strings.Count(fenced, "\n```")%2 == 1 {
		return text[:strings.LastIndex(fenced, "\n```")] // it is within a block of code
	}
	last := text[end:]
	if cut := strings.LastIndexByte(last, ' '); cut > 0 && !strings.ContainsAny(last[:cut], "*_`~[]<>|#") {
		return text[:end] + last[:cut]
	}
	return text[:end]
}
