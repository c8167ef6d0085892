package operator

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
)

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

// AuditIn says which rows of the audit log are wanted; with neither after nor before nor a kind the newest.
type AuditIn struct {
	Limit  int    `query:"limit" help:"the newest *many*" min:"1" max:"500" default:"50"`
	After  *int64 `query:"after" help:"only rows after this *number*, oldest first" min:"0"`
	Before *int64 `query:"before" help:"only rows before this *number*, newest first" min:"0"`
	Kind   string `query:"kind" help:"only this *kind* of row, or, as approval, all that begin so before their dot; newest first"`
}

var ListAudit = control.Verb[*Operator, AuditIn, spec.List[AuditItem]]{
	Name: "audit", Rights: rights.Owners,
	Help: "List rows of the audit log, oldest first, the newest when after is left out; newest first with before or kind",
	HTTP: "GET /v1/audit", Group: "gateway",
	Do: func(ctx context.Context, c *Operator, _ control.Call, in AuditIn) (spec.List[AuditItem], error) {
		if in.Before != nil || in.Kind != "" {
			return c.auditBefore(ctx, in)
		}
		after := int64(-1)
		if in.After != nil {
			after = *in.After
		}
		rows, err := c.Store.AuditAfter(after, in.Limit)
		if err != nil {
			return spec.List[AuditItem]{}, err
		}
		items, err := c.auditItems(rows)
		l := spec.Whole(items)
		if after >= 0 && len(items) == in.Limit {
			l.GoOn(items[len(items)-1].N)
		}
		return l, err
	},
}

// auditBefore lists rows from a number back, of one kind where one is wanted. Next is where to go on, also when the page is
// not full.
func (c *Operator) auditBefore(ctx context.Context, in AuditIn) (spec.List[AuditItem], error) {
	l := spec.Whole[AuditItem](nil)
	before := int64(math.MaxInt64)
	if in.Before != nil {
		before = *in.Before
	}
	for looked := 0; looked < control.LookMost; looked += control.LookAt {
		rows, err := c.Store.AuditBefore(before, control.LookAt)
		if err != nil {
			return l, err
		}
		items, err := c.auditItems(rows)
		if err != nil {
			return l, err
		}
		for _, item := range items {
			if in.Kind != "" && item.Kind != in.Kind && !strings.HasPrefix(item.Kind, in.Kind+".") {
				continue
			}
			if len(l.Items) == in.Limit {
				l.GoOn(l.Items[in.Limit-1].N)
				return l, nil
			}
			l.Items = append(l.Items, item)
		}
		if len(rows) < control.LookAt {
			return l, nil
		}
		before = rows[len(rows)-1].N
		if err := ctx.Err(); err != nil {
			return l, err
		}
	}
	l.GoOn(before)
	return l, nil
}

func (c *Operator) auditItems(rows []workspace.AuditEntry) ([]AuditItem, error) {
	list := make([]AuditItem, 0, len(rows))
	names := map[workspace.PersonID]string{}
	for _, e := range rows {
		item := AuditItem{N: e.N, Chain: e.Chain, Prev: e.Prev, Hash: e.Hash, Body: string(e.Body), What: map[string]any{}}
		if row, err := e.Row(); err == nil { // else it is shown as it stands, and the check names it
			item.Time, item.Kind, item.Actor, item.Via, item.What = row.At.UTC(), row.Kind, string(row.Actor), row.Via, row.What
			if item.Name, err = c.Find.Name(names, row.Actor); err != nil {
				return nil, err
			}
			item.By = workspace.Named(row.Actor, item.Name)
		}
		list = append(list, item)
	}
	return list, nil
}

// HeadIn may name a row that was noted elsewhere.
type HeadIn struct {
	Head string `query:"head" help:"a row that must be there, as its number, a colon and its hash"`
}

// VerifyAudit reads the whole audit log and checks its chain; the head, where there is one, must still be there.
var VerifyAudit = control.Verb[*Operator, HeadIn, AuditCheck]{
	Name: "audit.verify", Help: "Check the whole audit log", Rights: rights.Owners, HTTP: "GET /v1/audit/verify", Group: "gateway",
	Do: func(ctx context.Context, c *Operator, _ control.Call, in HeadIn) (AuditCheck, error) {
		known, err := ParseHead(in.Head)
		if err != nil {
			return AuditCheck{}, err
		}
		r, err := c.Store.VerifyAudit(ctx, known)
		if err != nil {
			return AuditCheck{}, err
		}
		return CheckOf(r), nil
	},
}
