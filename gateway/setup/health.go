package setup

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/configs"
)

// Part is something that a change may break.
type Part struct {
	Kind string `json:"kind"` // channel, model, store, listener
	Name string `json:"name,omitempty"`
}

func (p Part) String() string { return strings.TrimSpace(p.Kind + " " + p.Name) }

// says is a sentence of what a part is like.
func (p Part) says(why string) string {
	if !strings.ContainsAny(why[len(why)-1:], ".?!") {
		why += "."
	}
	return p.String() + ": " + why
}

// State is how a part is.
type State struct {
	Fine    bool
	Failed  bool   // it cannot go on as it is configured
	Settled bool   // it will not become another by itself soon
	Why     string // of what is not fine; a sentence without its end
}

// Health tells how parts are under a configuration.
type Health interface {
	// Look may ask a network; it returns soon.
	Look(ctx context.Context, c *configs.Config, p Part) State
}

// partsOf are the parts of a new configuration that changed keys are about, and those that are always there.
func partsOf(keys []string, new *configs.Config) (list []Part) {
	for _, key := range keys {
		kind, rest, ok := strings.Cut(key, "[")
		name, field, _ := strings.Cut(rest, "].")
		if !ok || kind == "models" && slices.Contains([]string{"context_window", "max_output_tokens", "vision"}, field) {
			continue
		}
		p := Part{strings.TrimSuffix(kind, "s"), name}
		if p.in(new) && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return append(list, Part{Kind: "store"}, Part{Kind: "listener"})
}

// in says whether a configuration has the part.
func (p Part) in(c *configs.Config) bool {
	switch p.Kind {
	case "model":
		return slices.ContainsFunc(c.Models, func(m configs.Model) bool { return m.Name == p.Name })
	case "channel":
		return slices.ContainsFunc(c.Channels, func(ch configs.Channel) bool { return ch.Name == p.Name })
	}
	return p.Name == ""
}

// fine are those of the parts that a configuration has and that are well now.
func (s *Setup) fine(ctx context.Context, c *configs.Config, parts []Part) (list []Part) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return !p.in(c) })
	for i, state := range s.look(ctx, c, parts) {
		if state.Fine {
			list = append(list, parts[i])
		}
	}
	return list
}

// look asks for all parts side by side.
func (s *Setup) look(ctx context.Context, c *configs.Config, parts []Part) []State {
	states := make([]State, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() { states[i] = s.opt.Health.Look(ctx, c, p) })
	}
	all.Wait()
	return states
}

// settleWithin is how long the parts of a change may take until it is judged.
const settleWithin = 8 * time.Second

// lookEvery is how often parts that are not settled are looked at again.
const lookEvery = 50 * time.Millisecond

// settle waits until the parts have settled, for a bounded time. failed is the first that was fine and has failed; notes are what
// people should know of the others.
func (s *Setup) settle(ctx context.Context, c *configs.Config, parts, fine []Part) (failed *Undone, notes []string) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	states, open := make([]State, len(parts)), slices.Clone(parts)
	for {
		for i, state := range s.look(ctx, c, open) {
			states[slices.Index(parts, open[i])] = state
		}
		open = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return states[slices.Index(parts, p)].Settled })
		if len(open) == 0 || ctx.Err() != nil {
			break
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	for i, p := range parts {
		switch state := states[i]; {
		case state.Fine:
		case state.Failed && failed == nil && slices.Contains(fine, p):
			failed = &Undone{p, state.Why}
		case state.Failed:
			state.Why = cmp.Or(state.Why, "it fails")
			notes = append(notes, p.says(state.Why))
		case !state.Settled || state.Why != "":
			notes = append(notes, p.says(cmp.Or(state.Why, "it has not connected yet")))
		}
	}
	return failed, notes
}
