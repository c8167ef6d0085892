package api

import (
	"context"
	"io"
	"slices"

	"parley/gateway/api/limit"
	"parley/gateway/api/stream"
	"parley/gateway/control"
	"parley/gateway/control/session"
)

// group is some endpoints that belong together.
type group interface{ routes() []route }

// groups are all groups: those that no verb's value describes, which are streams, uploads, sign-in and verbs that are functions,
// and the verbs that are values.
func groups(o Options, m *middleware, streams *stream.Streams, closing <-chan struct{}) []group {
	b := base{o.Control, m.call}
	metrics := func(w io.Writer) {
		writeMetrics(w, &m.counts, m.limits, streams)
		if o.Metrics != nil {
			o.Metrics(w)
		}
	}
	return []group{
		state{b, o.Commands, o.Ready},
		browsers{b, m.guard, m.limits, o.Live, o.Owner},
		messages{b, o.Feed, m.keys, m.limits, closing},
		files{b, m.limits},
		runs{b, streams},
		approvals{b, o.Systems},
		sessions{b, streams},
		upkeep{b, streams, m.limits, metrics, closing, o.Log, o.Now},
		verbs{b},
	}
}

// table is all endpoints.
func table(all []group) []route {
	var list []route
	for _, one := range all {
		list = slices.Concat(list, one.routes())
	}
	return list
}

// streamOptions are what streams read of control.
func streamOptions(o Options, limits *limit.Limits, closing <-chan struct{}) stream.Options {
	return stream.Options{Runs: o.Control.Runs, Sessions: o.Control.Sessions, Feed: o.Feed, Limits: limits, Closing: closing,
		Log: o.Log, Now: o.Now, Look: o.Control.Sessions.Look, Output: o.Control.Runs.MayWatch,
		Show: func(ctx context.Context, call control.Call, key string) (session.Item, error) {
			return session.Show.Call(ctx, o.Control.Sessions, call, session.BySession{Session: control.SessionWord(key)})
		},
		Needs: func(call control.Call) (n stream.Waiting, err error) {
			if n.Approvals, err = o.Control.Approvals.Waiting(call); err != nil {
				return n, err
			}
			if n.Failing, err = o.Control.Runs.Waiting(call); err != nil {
				return n, err
			}
			n.Pairings, err = o.Control.People.Waiting(call)
			return n, err
		},
		Book: o.Control.Operator.Log}
}

// Route is an endpoint as tests and documents see it.
type Route struct {
	Pattern string // method and path, as net/http writes them
	Open    bool   // needs no token
}

// everyRoute is the table of a server that is not there.
func everyRoute() []route { return table(groups(Options{}, &middleware{}, nil, nil)) }

// Routes lists all endpoints.
func Routes() []Route {
	var list []Route
	for _, rt := range everyRoute() {
		list = append(list, Route{rt.pattern, rt.traits.has(open)})
	}
	return list
}
