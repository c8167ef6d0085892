package channeltest

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

// Clock is the time as it is, until a test moves it forward. Its zero value is ready. Safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

// Now implements channels.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Move lets so much time pass.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// Log keeps what is logged, to be read while it goes on. Its zero value is ready.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Logger writes everything down, in lines of text.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is all that was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
