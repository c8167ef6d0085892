package control

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/workspace"
)

// SessionItem is a session as lists show it: the newest generation of its key.
type SessionItem struct {
	Key         string             `json:"key"`
	SessionID   string             `json:"session_id"` // of the generation
	Generation  int                `json:"generation"`
	Generations int                `json:"generations"`
	Agent       string             `json:"agent"`
	Name        string             `json:"name"`              // the title to show
	Given       string             `json:"given,omitempty"`   // that a person gave it
	Local       bool               `json:"local"`             // of WebChat, the terminal or the API
	Channel     string             `json:"channel,omitempty"` // configured name
	Network     string             `json:"network,omitempty"`
	Kind        string             `json:"kind,omitempty"` // dm, group, room
	Peer        string             `json:"peer,omitempty"`
	Thread      string             `json:"thread,omitempty"`
	Person      workspace.PersonID `json:"person,omitempty"` // whose it is; left out: several people's, or nobody known
	Sequence    int64              `json:"sequence"`         // of its newest event
	Preview     string             `json:"preview"`
	Created     time.Time          `json:"created"`
	Updated     time.Time          `json:"updated"`
	Running     bool               `json:"running"`
	Waiting     int                `json:"waiting"` // messages behind the running turn
	Usage       Usage              `json:"usage"`
}

// where a session is talked in.
func (it SessionItem) where() string {
	if it.Local {
		return "here"
	}
	return strings.TrimSpace(it.Channel + " " + it.Kind)
}

func (it SessionItem) state() string {
	switch {
	case it.Running && it.Waiting > 0:
		return fmt.Sprintf("running, %d wait", it.Waiting)
	case it.Running:
		return "running"
	case it.Waiting > 0:
		return fmt.Sprintf("%d wait", it.Waiting)
	}
	return "idle"
}

// ShortKey is a key as keyOf takes it in short, where it does.
func ShortKey(key string) string {
	rest, ok := strings.CutPrefix(key, "agent:")
	agent, name, local := strings.Cut(rest, ":local:")
	if !ok || !local || strings.Contains(agent, ":") || strings.Contains(name, ":") {
		return key
	}
	return agent + "/" + name
}

// Generation is one life of a session.
type Generation struct {
	SessionID  string     `json:"session_id"`
	Generation int        `json:"generation"`
	Created    time.Time  `json:"created"`
	Ended      *time.Time `json:"ended,omitempty"` // left out: the present one
	Sequence   int64      `json:"sequence"`        // of its newest event
	Preview    string     `json:"preview"`
	Usage      Usage      `json:"usage"`
	// ForkedFrom is the generation that this one parted from, before its event ForkedBefore; left out: it began with nothing.
	ForkedFrom   string `json:"forked_from,omitempty"`
	ForkedBefore int64  `json:"forked_before,omitempty"`
}

// RunItem is a run in a list, with whose it is.
type RunItem struct {
	ID            workspace.RunID     `json:"id"`
	Agent         workspace.AgentID   `json:"agent"`
	Session       string              `json:"session"` // key
	SessionID     workspace.SessionID `json:"session_id"`
	Generation    int                 `json:"generation"`
	Source        string              `json:"source"` // the network, or local
	Requester     workspace.PersonID  `json:"requester"`
	RequesterName string              `json:"requester_name"`
	AskedBy       string              `json:"asked_by"` // id, role and, in quotes, the name of the requester: what to show
	Role          workspace.Role      `json:"role"`
	State         workspace.RunState  `json:"state"`
	Reason        string              `json:"reason,omitempty"`
	Model         string              `json:"model,omitempty"`
	Said          string              `json:"said"` // the beginning of what it was asked
	Started       time.Time           `json:"started"`
	Ended         *time.Time          `json:"ended,omitempty"`
	Tries         int                 `json:"tries"`
	TaskID        string              `json:"task_id,omitempty"`
	ParentRun     workspace.RunID     `json:"parent_run,omitempty"`
	Usage         Usage               `json:"usage"`
}

// SourceOf is where a session lives: a network, or here.
func SourceOf(k workspace.Key) string {
	if k.Network != "" {
		return string(k.Network)
	}
	return "local"
}

// AuditItem is a row of the audit log as people read it; Body is what its hash is of, with Prev.
type AuditItem struct {
	N     int64          `json:"n"` // from 1, without a gap
	Time  time.Time      `json:"time"`
	Kind  string         `json:"kind"`
	Actor string         `json:"actor,omitempty"` // a person's id; left out: the gateway itself
	Name  string         `json:"actor_name,omitempty"`
	By    string         `json:"by,omitempty"`  // the actor's id and, in quotes, the name: what to show
	Via   string         `json:"via,omitempty"` // the surface
	What  map[string]any `json:"what"`
	Chain string         `json:"chain"`
	Prev  string         `json:"prev"` // hash of the row before; empty: the first
	Hash  string         `json:"hash"` // hex SHA-256 of prev, a line feed, and body
	Body  string         `json:"body"` // RFC 8785 JSON
}

// AuditCheck is what a check of the whole audit log found.
type AuditCheck struct {
	OK    bool        `json:"ok"`
	Rows  int64       `json:"rows"`
	Heads []AuditHead `json:"heads"`         // the last row of each chain: keep one elsewhere to notice a cut
	Bad   *AuditFault `json:"bad,omitempty"` // the first row that is wrong
	// no newest row was noted in audit.head: nothing tells whether the end was cut off
	Unwitnessed bool `json:"unwitnessed,omitempty"`
}

// AuditHead is a row by its number and hash.
type AuditHead struct {
	Chain string `json:"chain"`
	N     int64  `json:"n"`
	Hash  string `json:"hash"`
}

// AuditFault is the first wrong row of the audit log.
type AuditFault struct {
	Chain string `json:"chain"`
	N     int64  `json:"n"`
	Why   string `json:"why"`
}

// ParseHead reads a row's number and hash; empty is none.
func ParseHead(text string) (*workspace.AuditHead, error) {
	if text == "" {
		return nil, nil
	}
	n, hash, _ := strings.Cut(text, ":")
	number, err := strconv.ParseInt(n, 10, 64)
	if err != nil || number < 1 || len(hash) != 64 {
		return nil, workspace.Say(workspace.ErrInvalid, "A head is a row's number, a colon and its hash.")
	}
	return &workspace.AuditHead{N: number, Hash: hash}, nil
}

// CheckOf is a report as people read it.
func CheckOf(r workspace.AuditReport) AuditCheck {
	v := AuditCheck{OK: r.Bad == nil, Rows: r.Rows, Heads: []AuditHead{}, Unwitnessed: r.Unwitnessed}
	for _, h := range r.Heads {
		v.Heads = append(v.Heads, AuditHead(h))
	}
	if r.Bad != nil {
		bad := AuditFault(*r.Bad)
		v.Bad = &bad
	}
	return v
}

// Usage of model calls, in the words of the contract.
type Usage struct {
	InputTokens      int      `json:"inputTokens"`
	OutputTokens     int      `json:"outputTokens"`
	CacheReadTokens  int      `json:"cacheReadTokens"`
	CacheWriteTokens int      `json:"cacheWriteTokens"`
	TotalCostUSD     *float64 `json:"totalCostUsd"` // null: a model without a known price was asked
	DurationMS       int64    `json:"durationMs"`
	Calls            int      `json:"-"` // of models
}

// UsageOf is what was measured, as people read it.
func UsageOf(u workspace.Usage) Usage {
	return Usage{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CostUSD, u.DurationMS, u.Calls}
}

// Moment is a time that may be missing.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// RouteRow is a rule of the table of routes, or the fallback behind them all.
type RouteRow struct {
	Precedence int    `json:"precedence"`  // 1 is asked first
	N          int    `json:"n,omitempty"` // position in the configuration, from 1
	Rule       string `json:"rule"`        // as bindings name it
	Match      Match  `json:"match"`
	Agent      string `json:"agent"`
	Session    string `json:"session,omitempty"` // a named one beside the room's first
	// Fanout are further agents, each of which gets a copy.
	Fanout   []string `json:"fanout,omitempty"`
	Fallback bool     `json:"fallback"` // the default agent, where no rule matches: no assignment
}

// Match is what all must fit; what is not given fits everything.
type Match struct {
	Type    string   `json:"type,omitempty"`
	Channel string   `json:"channel,omitempty"`
	Server  string   `json:"server,omitempty"`
	Roles   []string `json:"roles,omitempty"`
	Team    string   `json:"team,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Peer    string   `json:"peer,omitempty"`
	Thread  string   `json:"thread,omitempty"`
}

// Config is the configuration in force, with [secret] in place of every credential.
type Config struct {
	ConfigFile
	YAML   string `json:"yaml"`
	Values any    `json:"values"` // the same, parsed
}

// ConfigFile is how the configuration in force and its file stand to one another.
type ConfigFile struct {
	Path      string     `json:"path"`                 // the file; empty: there is none, all is default
	Since     time.Time  `json:"since"`                // when what is in force was taken
	Problem   string     `json:"problem,omitempty"`    // why what the file holds now is not in force; empty: it is
	ProblemAt *time.Time `json:"problem_at,omitempty"` // when that was found
	Waits     []string   `json:"waits,omitempty"`      // keys whose change waits for a restart
}

// Done says what was done, or begun.
type Done struct {
	Status string `json:"status"`
}
