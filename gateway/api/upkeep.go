package api

import (
	"context"
	_ "embed"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"parley/gateway/api/limit"
	"parley/gateway/api/stream"
	"parley/gateway/api/wire"
	"parley/gateway/control/operator"
)

// upkeep is what whoever runs the gateway asks for.
type upkeep struct {
	base
	streams *stream.Streams
	limits  *limit.Limits
	metrics func(io.Writer)
	closing <-chan struct{}
	log     *slog.Logger
	now     func() time.Time
}

func (o upkeep) routes() []route {
	return []route{
		{"GET /metrics", o.counters, 0, operation{"gateway", "Counters as Prometheus text", "", nil, one(200, ""), "text/plain"}},
		{"GET /openapi.json", o.openapi, 0, operation{"gateway", "This document", "", nil, one(200, map[string]any{}), ""}},
		{"GET /v1/logs/events", o.logEvents, 0,
			operation{"gateway", "Follow the daemon's log", "level after", nil, one(200, operator.LogItem{}), sseMedia}},
		{"POST /v1/backup", o.backup, bare | loose,
			operation{"gateway", "Download the data directory", "", wire.NoBody{}, one(200, ""), "application/gzip"}},
		{"GET /v1/channels/{name}/login", o.loginStep, 0,
			operation{"channels", "Wait for the next step of a login, at most 25 seconds", "after=step",
				nil, one(200, operator.Login{}), ""}},
	}
}

// document is this API as OpenAPI 3.1. A test makes it from the table of endpoints and holds real answers against it.
//
//go:embed openapi.json
var document []byte

func (o upkeep) openapi(w http.ResponseWriter, r *http.Request) error {
	if err := o.control.Operator.Describe(r.Context(), o.call(r)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(document) // a client that left needs no answer
	return nil
}

func (o upkeep) logEvents(w http.ResponseWriter, r *http.Request) error {
	return o.streams.LogEvents(w, r, o.call(r))
}

// counters writes Prometheus' text format.
func (o upkeep) counters(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	o.metrics(w)
	return nil
}

// loginStep holds the question until there is something new.
func (o upkeep) loginStep(w http.ResponseWriter, r *http.Request) error {
	after := -1
	if r.URL.Query().Has("after") {
		n, err := wire.Number(r, "after")
		if err != nil {
			return err
		}
		after = int(n)
	}
	leave, err := o.limits.Hold(o.call(r).Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { // a shutdown does not wait for a step
		select {
		case <-o.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	l, err := o.control.Operator.ChannelLogin(ctx, o.call(r), r.PathValue("name"), after)
	if err == nil {
		wire.Reply(w, http.StatusOK, l)
	}
	return err
}
