package gateway

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"parley/gateway/control"
	"parley/gateway/logbook"
	"parley/routes"
)

// NewLogbook is a book for Options.Book; its Handler goes behind what takes secrets out of the log.
func NewLogbook() *logbook.Book { return &logbook.Book{} }

// Log is never nil: a gateway without a book has an empty one.
func (h house) Log() *logbook.Book {
	if h.g.opt.Book == nil {
		return NewLogbook()
	}
	return h.g.opt.Book
}

func (h house) ConfigFile() control.ConfigFile { return h.g.conf.view() }

// Config shows the configuration in force.
func (h house) Config() (control.Config, error) {
	c := h.g.config()
	text, err := c.Show()
	if err != nil {
		return control.Config{}, err
	}
	out := control.Config{ConfigFile: h.g.conf.view(), YAML: string(text)}
	if err := yaml.Unmarshal(text, &out.Values); err != nil {
		return control.Config{}, fmt.Errorf("parse the configuration that is shown: %w", err)
	}
	return out, nil
}

// Routes lists the rules in the order in which they are asked.
func (h house) Routes() []control.RouteRow {
	snap := h.g.snapshot()
	var out []control.RouteRow
	for i, l := range snap.Table.List() {
		row := control.RouteRow{Precedence: i + 1, N: l.N, Rule: l.Label, Agent: string(l.Agent), Session: l.Session, Match: matchOf(l.Rule)}
		for _, f := range l.Fanout {
			row.Fanout = append(row.Fanout, string(f))
		}
		out = append(out, row)
	}
	return append(out, control.RouteRow{Precedence: len(out) + 1, Rule: routes.Fallback, Agent: string(snap.Default), Fallback: true})
}

func matchOf(r routes.Rule) control.Match {
	return control.Match{Type: string(r.Type), Channel: r.Channel, Server: r.Server, Roles: r.Roles, Team: r.Team, Kind: string(r.Kind), Peer: string(r.Peer), Thread: string(r.Thread)}
}
