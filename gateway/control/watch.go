package control

import (
	"context"
	"errors"
	"fmt"

	"parley/channels"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// Found is a run, or the input that waits for one, for those who watch it. Run is zero while no run has taken it.
type Found struct {
	ID    string // by which it was found, whole
	Run   workspace.Run
	Input workspace.Input // zero when the id was a run's
	Key   string          // of the session
}

// Ended says that nothing more will come of it.
func (f Found) Ended() bool {
	if f.Run.ID != "" {
		return workspace.Runs.Final(f.Run.State)
	}
	return workspace.Inputs.Final(f.Input.State)
}

// Find is Run without what the run did.
func (c *Control) Find(_ context.Context, call Call, word RunWord) (Found, error) {
	if err := c.may(call, "run.read"); err != nil {
		return Found{}, err
	}
	return c.foundRun(call, word)
}

// foundRun is one that is the caller's own, or anybody's for an owner.
func (c *Control) foundRun(call Call, word RunWord) (Found, error) {
	id, err := c.runOf(call, word)
	if err != nil {
		return Found{}, err
	}
	missing := workspace.Say(workspace.ErrNotFound, "There is no run %q.", string(word))
	f := Found{ID: id}
	run := workspace.RunID(id)
	in, err := c.Store.Input(workspace.InputID(id))
	switch {
	case err == nil && !owner(call) && in.Person != call.Actor.Person:
		return f, missing
	case err == nil:
		f.Input, f.Key, run = in, in.Binding.Key, in.RunID
	case !errors.Is(err, workspace.ErrNotFound):
		return f, err
	}
	if run == "" {
		return f, nil
	}
	f.Run, err = c.Store.Run(run)
	if errors.Is(err, workspace.ErrNotFound) || err == nil && !owner(call) && f.Run.Requester != call.Actor.Person {
		return Found{}, missing
	}
	if err != nil || f.Key != "" {
		return f, err
	}
	ses, err := c.Store.Session(f.Run.SessionID)
	f.Key = ses.Key.String()
	return f, err
}

// Lines lists what the transcript holds of a found run, or of a found command.
func (c *Control) Lines(f Found) ([]workspace.Entry, error) {
	if f.Run.ID != "" {
		return c.Store.RunEntries(f.Run.SessionID, f.Run.ID)
	}
	e, err := c.Store.InputEntry(f.Input.ID)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil, nil
	}
	return []workspace.Entry{e}, err
}

// EntriesOf lists the transcript of one generation after n; ses is what Session found.
func (c *Control) EntriesOf(ses workspace.Session, after int64, limit int) ([]workspace.Entry, error) {
	return c.Store.Entries(ses.ID, after, limit)
}

// EntriesBefore lists the newest lines of a generation that stand before a line, oldest first.
func (c *Control) EntriesBefore(ses workspace.Session, before int64, limit int) ([]workspace.Entry, error) {
	return c.Store.EntriesBefore(ses.ID, before, limit)
}

// LastOf is the number of the generation's newest line; 0: it has none.
func (c *Control) LastOf(ses workspace.Session) (int64, error) {
	last, err := c.Store.LastEntries(ses.ID, 1)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].N, nil
}

// Watch says whether a session may be watched; it need not exist yet.
func (c *Control) Watch(_ context.Context, call Call, word SessionWord) (workspace.Key, error) {
	if err := c.may(call, "session.read"); err != nil {
		return workspace.Key{}, err
	}
	k, err := c.keyOf(call, word)
	if err != nil || !rights.Reaches(call.Actor, k) {
		return workspace.Key{}, workspace.Say(workspace.ErrNotFound, "There is no session %q.", string(word))
	}
	if _, ok := c.agent(k.Agent); ok {
		return k, nil
	}
	if _, err := c.Store.SessionByKey(k); err != nil { // of an agent that is configured no more
		return workspace.Key{}, noSession(workspace.ErrNotFound, k)
	}
	return k, nil
}

// ByRun names a run, or the message that waits for one.
type ByRun struct {
	Run RunWord `path:"id"`
}

// StopRun stops the turn that a run or a message is in, as Stop does in its chat. What has ended stays as it is.
var StopRun = Verb[ByRun, Stopped]{
	Name: "stop", Help: "Stop a run and what waits behind it", Rights: rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own},
	HTTP: "POST /v1/runs/{id}/stop", Group: "runs", CLI: "run stop <id>",
	Do: func(ctx context.Context, c *Control, call Call, in ByRun) (Stopped, error) {
		f, err := c.foundRun(call, in.Run)
		if err != nil || f.Ended() {
			return Stopped{}, err
		}
		if call.Session, err = workspace.ParseKey(f.Key); err != nil {
			return Stopped{}, err
		}
		return c.Stop(ctx, call)
	},
	Show: func(_ ByRun, v Stopped) spec.Shown {
		switch {
		case v.Run == "" && v.Queued == 0:
			return spec.Shown{Line: "nothing was running"}
		case v.Run == "":
			return spec.Shown{Line: fmt.Sprintf("%d waiting messages cancelled", v.Queued)}
		}
		return spec.Shown{Line: "run " + workspace.Short(v.Run) + " stopped"}
	},
}

// Probe is a made-up message for a dry run of gate and routes.
type Probe struct {
	Channel   string // configured name
	Kind      channels.PeerKind
	Peer      string
	Thread    string
	User      string
	Roles     []string
	Server    string
	Team      string
	Text      string
	Mentioned bool
}

// Tried is one rule as a dry run saw it, the most specific first.
type Tried struct {
	N       int    `json:"n"` // position in the configuration, from 1
	Rule    string `json:"rule"`
	Agent   string `json:"agent"`
	Matched bool   `json:"matched"`
	Why     string `json:"why,omitempty"` // of a rule that did not match
}

// Explained is what would happen to a made-up message.
type Explained struct {
	Outcome  string   `json:"outcome"`
	Role     string   `json:"role,omitempty"`
	Rule     string   `json:"rule"` // of the gate
	Gates    []string `json:"gates"`
	Reason   string   `json:"reason,omitempty"`
	Agent    string   `json:"agent"`
	Session  string   `json:"session"`
	Route    string   `json:"route"`
	Fallback bool     `json:"fallback"` // the default agent, not an assignment
	Fanout   []string `json:"fanout,omitempty"`
	Rules    []Tried  `json:"rules"`
}

// Probe runs gate and routes over a made-up message and stores nothing.
func (c *Control) Probe(ctx context.Context, call Call, p Probe) (Explained, error) {
	if p.Kind == "" {
		p.Kind = channels.DM
	}
	if p.Kind != channels.DM && p.Kind != channels.Group && p.Kind != channels.Room {
		return Explained{}, workspace.Say(workspace.ErrInvalid, "There is no kind %q. Kinds are dm, group and room.", string(p.Kind))
	}
	if p.User == "" {
		p.User = p.Peer
	}
	f := routes.Facts{In: channels.Inbound{Kind: channels.KindMessage, From: channels.Sender{User: channels.UserID(p.User), Roles: p.Roles},
		To:   channels.Address{Kind: p.Kind, Peer: channels.PeerID(p.Peer), Thread: channels.ThreadID(p.Thread)},
		Text: p.Text, Mentioned: p.Mentioned, Server: p.Server, Team: p.Team}}
	v, route, considered, err := c.Explain(ctx, call, f, p.Channel)
	if err != nil {
		return Explained{}, err
	}
	x := Explained{Outcome: string(v.Outcome), Role: string(v.Role), Rule: v.Decision.Rule, Gates: append([]string{}, v.Decision.Gates...), Reason: v.Decision.Reason,
		Agent: string(route.Agent), Session: route.Binding.Key, Route: route.Rule, Fallback: route.Fallback, Rules: []Tried{}}
	for _, f := range route.Fanout {
		x.Fanout = append(x.Fanout, string(f.Agent))
	}
	for _, r := range considered {
		x.Rules = append(x.Rules, Tried{N: r.N, Rule: r.Rule, Agent: string(r.Agent), Matched: r.Matched, Why: r.Why})
	}
	return x, nil
}

// Saved is what a backup holds, and what it does not.
type Saved struct {
	Files   int64
	LeftOut int64         // links, special files, and what could not be read
	Left    []LeftOutFile // the first of them
}

// LeftOutFile is a file that a backup does not hold.
type LeftOutFile struct{ Name, Reason string }

// Backup writes the data directory into a new file while the gateway runs.
func (c *Control) Backup(ctx context.Context, call Call, file string) (Saved, error) {
	if err := c.may(call, "backup"); err != nil {
		return Saved{}, err
	}
	m, err := c.Store.Backup(ctx, file)
	switch {
	case errors.Is(err, store.ErrElsewhere):
		err = workspace.Say(err, "The database is in PostgreSQL: back it up with pg_dump, and the data directory by itself.")
	case errors.Is(err, store.ErrBackingUp):
		err = workspace.Say(errors.Join(workspace.ErrConflict, err), "A backup is being made already. Wait until it is done.")
	}
	s := Saved{Files: m.Files, LeftOut: m.LeftOut}
	for _, l := range m.Left {
		s.Left = append(s.Left, LeftOutFile{l.Name, l.Reason})
	}
	return s, err
}
