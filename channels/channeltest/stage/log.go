package stage

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// Log keeps what is logged, for a test to wait for and for a failing one to show. Its zero value is ready.
type Log struct {
	mu    sync.Mutex
	text  strings.Builder
	watch Watch
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.watch.Changed()
	return l.text.Write(p)
}

// Count says how often the log holds a text.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Wait blocks until the log holds a text n times or more.
func (l *Log) Wait(ctx context.Context, text string, n int) error {
	if err := l.watch.Wait(ctx, func() bool { return l.Count(text) >= n }); err != nil {
		return fmt.Errorf("the log does not say %q %d times: %w", text, n, ctx.Err())
	}
	return nil
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
