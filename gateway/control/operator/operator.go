// Package operator is the verbs about the gateway itself: configuration, channels, routes, agents, policy, spending, audit log,
// the daemon's own log, and backups.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/logbook"
	"parley/gateway/rights"
	"parley/gateway/snapshot"
	"parley/gateway/spec"
	"parley/gateway/transport"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// Operator does the verbs about the gateway itself. All fields are needed.
type Operator struct {
	*control.Kernel
	Store    Store
	Snapshot func() *snapshot.Snapshot // of the configuration in force
	Channels *transport.Channels
	Logins   *transport.Logins
	Models   ModelServers
	Networks []channels.Factory // that are built in
	Process  Process
	Dry      Routing
}

// Store is what these verbs use of it.
type Store interface {
	Audit(row workspace.AuditRow) error
	AuditAfter(n int64, limit int) ([]workspace.AuditEntry, error)
	AuditBefore(n int64, limit int) ([]workspace.AuditEntry, error)
	VerifyAudit(ctx context.Context, known *workspace.AuditHead) (workspace.AuditReport, error)
	SpentBetween(from, to time.Time, after workspace.RunID, limit int) (list []store.Spent, last workspace.RunID, more bool, err error)
	Human(id workspace.PersonID) (store.Human, error)
	Backup(ctx context.Context, file string) (store.Manifest, error)
}

// Routing runs gate and routes dry. *intake.Receiver is one.
type Routing interface {
	// Explain is what would become of a made-up event.
	Explain(f routes.Facts, channel string) (routes.Verdict, routes.Route, []routes.Considered, error)
}

// Process is what the running gateway tells of itself.
type Process struct {
	Book       *logbook.Book // the newest part of its log
	ConfigFile func() control.ConfigFile
	Reload     func() // reads the configuration again and does not wait
}

// Config is the configuration in force, with [secret] in place of every credential.
type Config struct {
	control.ConfigFile
	YAML   string `json:"yaml"`
	Values any    `json:"values"` // the same, parsed
}

// ShowConfig is what the gateway runs with.
var ShowConfig = control.Verb[*Operator, struct{}, Config]{
	Name: "config.show", Help: "Show the configuration in force, without secrets", Rights: rights.Owners,
	HTTP: "GET /v1/config", Group: "gateway",
	Do: func(_ context.Context, c *Operator, _ control.Call, _ struct{}) (Config, error) {
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
var ReloadConfig = control.Verb[*Operator, struct{}, control.Done]{
	Name: "config.reload", Help: "Read the configuration again", Rights: rights.Owners,
	HTTP: "POST /v1/config/reload", Status: http.StatusAccepted, Group: "gateway",
	Do: func(_ context.Context, c *Operator, _ control.Call, _ struct{}) (control.Done, error) {
		c.Process.Reload()
		return control.Done{Status: "reading again"}, nil
	},
}

// Describe says whether the caller may read how this API is spoken.
func (c *Operator) Describe(_ context.Context, call control.Call) error {
	return c.Allow(call, "describe")
}

var ListAgents = control.Verb[*Operator, struct{}, spec.List[control.Agent]]{
	Name: "run.read", Help: "List the configured agents", Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP: "GET /v1/agents", Group: "agents", CLI: "agent list", MCP: "list_agents",
	Do: func(_ context.Context, c *Operator, _ control.Call, _ struct{}) (spec.List[control.Agent], error) {
		return spec.Whole(c.Find.Agents()), nil
	},
	Show: func(_ struct{}, l spec.List[control.Agent]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "NAME", "MODELS", "DEFAULT"}}
		for _, a := range l.Items {
			s.Rows = append(s.Rows, []any{a.ID, a.Name, strings.Join(a.Models, ", "), a.Default})
		}
		return s
	},
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
func (c *Operator) Backup(ctx context.Context, call control.Call, file string) (Saved, error) {
	if err := c.Allow(call, "backup"); err != nil {
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

// Invited says whether the caller may make a way in for a browser, and keeps that it was made: who comes in by it is the
// local owner.
func (c *Operator) Invited(_ context.Context, call control.Call) error {
	if err := c.Allow(call, "sign-in.code"); err != nil {
		return err
	}
	return c.Store.Audit(c.AuditRow(call, workspace.AuditSignInCode, nil))
}

// SignedIn keeps that a browser came in, as the local owner, before it is let in. Whoever knows a code has no other right.
func (c *Operator) SignedIn(_ context.Context, from string) error {
	err := c.Store.Audit(workspace.AuditRow{At: c.Now(), Kind: workspace.AuditSignIn, Via: "page", What: map[string]any{"from": from}})
	if err != nil {
		return fmt.Errorf("keep that a browser signed in: %w", err)
	}
	return nil
}
