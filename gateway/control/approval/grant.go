package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Grant is what runs in a session without a question, since somebody allowed it there before.
type Grant struct {
	ID      string     `json:"id"` // of the approval that it came with
	Short   string     `json:"short"`
	Tool    string     `json:"tool"`
	Allows  string     `json:"allows"`            // what runs, in words: git status …
	Program string     `json:"program,omitempty"` // of a command, as it was found
	Agent   string     `json:"agent"`
	Session string     `json:"session"` // key
	Source  string     `json:"source"`  // its network, or local
	AskedBy string     `json:"asked_by"`
	Given   time.Time  `json:"decided_at"`
	By      string     `json:"decided_by_name"`
	Via     string     `json:"via,omitempty"`
	Until   *time.Time `json:"until,omitempty"` // left out: until the session begins again
}

// code is what it allows, between backticks, which it cannot end.
func (g Grant) code() string { return strings.ReplaceAll(workspace.Line(g.Allows, 120), "`", "ˋ") }

func (c *Approvals) grant(ap workspace.Approval) (Grant, error) {
	name, err := c.Find.Name(map[workspace.PersonID]string{}, ap.Requester)
	v := Approval{Approval: ap, Name: name}
	g := Grant{ID: string(ap.ID), Short: workspace.Short(ap.ID), Tool: ap.Tool, Allows: allows(ap), Agent: string(ap.Agent),
		Session: ap.Session, Source: "local", AskedBy: v.AskedBy(), Given: ap.Decided.UTC(), By: c.Questions.DeciderName(ap), Via: ap.Via,
		Until: control.Moment(ap.Body.Rule.Until(ap.Decided))}
	if r := ap.Body.Rule; r != nil {
		g.Program = r.Program
	}
	if k, err := workspace.ParseKey(ap.Session); err == nil {
		g.Source = control.SourceOf(k)
	}
	return g, err
}

// allows is what a grant for the session lets run, in words; empty: none can be given.
func allows(ap workspace.Approval) string {
	switch {
	case !slices.Contains(ap.Body.Grants, workspace.ForSession):
		return ""
	case ap.Body.Rule != nil:
		return ap.Body.Rule.Says()
	}
	return ap.Tool
}

// standing are the grants that hold and are the caller's business, the newest first.
func (c *Approvals) standing(call control.Call) ([]workspace.Approval, error) {
	list, err := c.Store.Grants()
	return slices.DeleteFunc(list, func(ap workspace.Approval) bool { return !c.sees(call, ap) || !c.Questions.Holds(ap) }), err
}

// GrantsIn says of which session.
type GrantsIn struct {
	Session string `query:"session" help:"only of this *session*"`
}

// ListGrants lists what was allowed for a session and still holds; a chat is told of its own.
var ListGrants = control.Verb[*Approvals, GrantsIn, spec.List[Grant]]{
	Name: "grant.list", Help: "List what runs in sessions without a question, since somebody allowed it there", Rights: readers,
	HTTP: "GET /v1/grants", Group: "approvals", CLI: "approval granted", Chat: "approve granted",
	Do: func(_ context.Context, c *Approvals, call control.Call, in GrantsIn) (spec.List[Grant], error) {
		l := spec.Whole([]Grant{})
		if call.Input != nil {
			in.Session = call.Session.String()
		}
		list, err := c.standing(call)
		if err != nil {
			return l, err
		}
		for _, ap := range list {
			if in.Session != "" && ap.Session != in.Session {
				continue
			}
			g, err := c.grant(ap)
			if err != nil {
				return l, err
			}
			l.Items = append(l.Items, g)
		}
		return l, c.Answer(call, l)
	},
	Show: func(_ GrantsIn, l spec.List[Grant]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "ALLOWS", "FOR", "SESSION", "GIVEN BY", "UNTIL"}}
		for _, g := range l.Items {
			var until any = "its session begins again"
			if g.Until != nil {
				until = spec.Until(*g.Until)
			}
			s.Rows = append(s.Rows, []any{g.Short, spec.Brief{Text: g.Allows, Columns: 50}, g.AskedBy, g.Session, g.By, until})
		}
		return s
	},
	Say: func(l spec.List[Grant]) string {
		if len(l.Items) == 0 {
			return "Nothing is allowed for this session: each call asks."
		}
		var b strings.Builder
		for _, g := range l.Items {
			until := "until /new"
			if g.Until != nil {
				until = "until " + g.Until.Format("2006-01-02 15:04 MST") + " or /new"
			}
			fmt.Fprintf(&b, "- **%s** `%s` for %s, %s\n", g.Short, g.code(), g.AskedBy, until)
		}
		b.WriteString("`/approve revoke <id>` takes one back.")
		return b.String()
	},
}

// Revoke takes back what was allowed for a session: an owner, or who asked for it.
var Revoke = control.Verb[*Approvals, control.ByID, Grant]{
	Name: "grant.revoke", Help: "Take back what was allowed for a session",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP:   "DELETE /v1/grants/{id}", Group: "approvals", CLI: "approval revoke <id>", Chat: "approve revoke <id>",
	Do: func(_ context.Context, c *Approvals, call control.Call, in control.ByID) (Grant, error) {
		list, err := c.standing(call)
		if err != nil {
			return Grant{}, err
		}
		i := slices.IndexFunc(list, func(ap workspace.Approval) bool {
			return strings.EqualFold(string(ap.ID), in.ID) || strings.EqualFold(workspace.Short(ap.ID), in.ID)
		})
		if i < 0 {
			return Grant{}, workspace.Say(workspace.ErrNotFound, "Nothing that is allowed for a session is called %q.",
				clip.Runes(in.ID, 40))
		}
		g, err := c.grant(list[i])
		if err != nil {
			return g, err
		}
		revoke := store.Revoke{ID: list[i].ID, By: call.Actor.Person, Via: call.Surface()}
		if _, err := c.Commit(call, func(store.Did) any { return g }, revoke); err != nil {
			return g, err
		}
		c.Questions.Revoked()
		return g, nil
	},
	Show: func(_ control.ByID, g Grant) spec.Shown { return spec.Shown{Line: g.Allows + " asks again"} },
	Say: func(g Grant) string {
		return fmt.Sprintf("`%s` asks again from now on.", g.code())
	},
}
