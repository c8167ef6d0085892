package channels

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// Way notes how far one HTTP request came, for the question that a failed Send raises: can the network have it? Its zero
// value is ready. Safe for concurrent use, since net/http reports from goroutines of its own.
type Way struct {
	connected atomic.Bool // a connection was had: bytes may have left
	cut       atomic.Bool // the request could not be written to its end
}

// Watch is a context for the request.
func (w *Way) Watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport itself tries again when a pooled connection turned out dead before a byte was written.
		GetConn:      func(string) { w.connected.Store(false); w.cut.Store(false) },
		GotConn:      func(httptrace.GotConnInfo) { w.connected.Store(true) },
		WroteRequest: func(i httptrace.WroteRequestInfo) { w.cut.Store(i.Err != nil) },
	})
}

// Unsent says that the request has surely not been done: there was no connection, or it broke while the request was being
// written, and no server does half a request.
func (w *Way) Unsent() bool { return !w.connected.Load() || w.cut.Load() }
