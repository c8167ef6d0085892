package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"parley/configs"
	"parley/gateway/logbook"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

func (c *Control) routes() []RouteRow {
	snap := c.Snapshot()
	var out []RouteRow
	for i, l := range snap.Table.List() {
		row := RouteRow{Precedence: i + 1, N: l.N, Rule: l.Label, Agent: string(l.Agent), Session: l.Session,
			Match: Match{Type: string(l.Type), Channel: l.Channel, Server: l.Server, Roles: l.Roles, Team: l.Team, Kind: string(l.Kind),
				Peer: string(l.Peer), Thread: string(l.Thread)}}
		for _, f := range l.Fanout {
			row.Fanout = append(row.Fanout, string(f))
		}
		out = append(out, row)
	}
	return append(out, RouteRow{Precedence: len(out) + 1, Rule: routes.Fallback, Agent: string(snap.Default), Fallback: true})
}

// ListRoutes lists the rules in the order in which they are asked, and last the fallback.
var ListRoutes = Verb[struct{}, spec.List[RouteRow]]{
	Name: "routes", Help: "List the routes in the order in which they are asked", Rights: rights.Owners, HTTP: "GET /v1/routes", Group: "routes",
	Do: func(_ context.Context, c *Control, _ Call, _ struct{}) (spec.List[RouteRow], error) {
		return spec.Whole(c.routes()), nil
	},
}

// Process is what the running gateway tells of itself.
type Process struct {
	Began      time.Time
	Book       *logbook.Book // the newest part of its log
	ConfigFile func() ConfigFile
	Reload     func() // reads the configuration again and does not wait
}

// ShowConfig is what the gateway runs with.
var ShowConfig = Verb[struct{}, Config]{
	Name: "config.show", Help: "Show the configuration in force, without secrets", Rights: rights.Owners, HTTP: "GET /v1/config", Group: "gateway",
	Do: func(_ context.Context, c *Control, _ Call, _ struct{}) (Config, error) {
		text, err := c.Snapshot().Config.Show()
		if err != nil {
			return Config{}, err
		}
		out := Config{ConfigFile: c.Process.ConfigFile(), YAML: string(text)}
		if err := yaml.Unmarshal(text, &out.Values); err != nil {
			return Config{}, fmt.Errorf("parse the configuration that is shown: %w", err)
		}
		return out, nil
	},
}

// ReloadConfig reads the configuration again; a bad one changes nothing, and the log says why.
var ReloadConfig = Verb[struct{}, Done]{
	Name: "config.reload", Help: "Read the configuration again", Rights: rights.Owners,
	HTTP: "POST /v1/config/reload", Status: http.StatusAccepted, Group: "gateway",
	Do: func(_ context.Context, c *Control, _ Call, _ struct{}) (Done, error) {
		c.Process.Reload()
		return Done{"reading again"}, nil
	},
}

// Log is the newest part of the daemon's own log.
func (c *Control) Log(_ context.Context, call Call) (*logbook.Book, error) {
	if err := c.may(call, "logs"); err != nil {
		return nil, err
	}
	return c.Process.Book, nil
}

// Describe says whether the caller may read how this API is spoken.
func (c *Control) Describe(_ context.Context, call Call) error { return c.may(call, "describe") }

// Answered is what a client was told of a write that it gave a key.
type Answered struct {
	Hash   string // of what was asked
	Status int
	Body   string
}

// AnswerOf finds what the caller's key was answered; workspace.ErrNotFound: it is new, ErrOtherBody: a message has it. The verb
// itself checks rights.
func (c *Control) AnswerOf(call Call, key string) (Answered, error) {
	a, err := c.Store.AnswerOf(call.Actor.Person, key)
	if !errors.Is(err, workspace.ErrNotFound) {
		return Answered(a), err
	}
	// the key of a message of the API is its client's idempotency key
	if _, merr := c.Store.InputByKey(configs.API, string(call.Actor.Person), key); !errors.Is(merr, workspace.ErrNotFound) {
		return Answered{}, errors.Join(otherBody(), merr)
	}
	return Answered{}, err
}

func otherBody() error {
	return workspace.Say(fmt.Errorf("%w: %w", ErrOtherBody, workspace.ErrConflict), "This idempotency key was used for another request.")
}

// KeepAnswer keeps what the caller's key was answered, for 30 days; with Status 0 only what it was used for. workspace.ErrConflict: it
// was answered before.
func (c *Control) KeepAnswer(call Call, key string, a Answered) error {
	if call.Actor.Person == "" {
		return workspace.ErrDenied
	}
	return c.Store.PutAnswer(call.Actor.Person, key, store.Answer(a))
}

// KeepAnswerSoon is KeepAnswer for what is done although the store may take nothing. Until the answer is stored a repeat acts again.
func (c *Control) KeepAnswerSoon(ctx context.Context, call Call, key string, a Answered) {
	err := c.Store.PutAnswerSoon(ctx, call.Actor.Person, key, store.Answer(a), auditWithin)
	if err != nil && !errors.Is(err, workspace.ErrConflict) && c.Logger != nil {
		c.Logger.Error("answer of an idempotency key is not stored yet", "actor", call.Actor.Person, "err", err)
	}
}

// Needs is how many pairing requests and questions wait for a decision of the caller; none, when it is not theirs to
// decide.
func (c *Control) Needs(_ context.Context, call Call) (pairings, approvals int, err error) {
	if c.May(call, "approval.list") {
		if approvals, err = c.waitingApprovals(call); err != nil {
			return 0, 0, err
		}
	}
	if !c.May(call, "pairing.list") {
		return 0, approvals, nil
	}
	list, err := c.Store.Pairings(pairingsShown)
	for _, p := range list {
		if routes.PairingOpen(p, c.Now()) {
			pairings++
		}
	}
	return pairings, approvals, err
}

// Me is who asks, the agents that answer, and the number of this start of the gateway.
func (c *Control) Me(_ context.Context, call Call) (who workspace.Actor, agents []Agent, boot int64, err error) {
	if err := c.may(call, "me"); err != nil {
		return workspace.Actor{}, nil, 0, err
	}
	return call.Actor, append([]Agent{}, c.agents()...), c.Store.Epoch(), nil
}

var ListAgents = Verb[struct{}, spec.List[Agent]]{
	Name: "run.read", Help: "List the configured agents", Rights: readSession, HTTP: "GET /v1/agents", Group: "agents", CLI: "agent list",
	Do: func(_ context.Context, c *Control, _ Call, _ struct{}) (spec.List[Agent], error) {
		return spec.Whole(c.agents()), nil
	},
	Show: func(_ struct{}, l spec.List[Agent]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "NAME", "MODELS", "DEFAULT"}}
		for _, a := range l.Items {
			s.Rows = append(s.Rows, []any{a.ID, a.Name, strings.Join(a.Models, ", "), a.Default})
		}
		return s
	},
}
