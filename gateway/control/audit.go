package control

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

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

// Audit lists rows of the audit log behind a number, oldest first; with after < 0 the newest.
func (c *Control) Audit(_ context.Context, call Call, after int64, limit int) ([]AuditItem, error) {
	if err := c.may(call, "audit"); err != nil {
		return nil, err
	}
	rows, err := c.Store.AuditAfter(after, limit)
	if err != nil {
		return nil, err
	}
	return c.auditItems(rows)
}

// AuditBack lists rows of the audit log before a number, newest first; kind, where it is not empty, is the only kind that
// is wanted, or its part before the dot. next is where to go on, also when the page is not full; 0: there is no more.
func (c *Control) AuditBack(ctx context.Context, call Call, before int64, kind string, limit int) (list []AuditItem, next int64, err error) {
	if err := c.may(call, "audit"); err != nil {
		return nil, 0, err
	}
	list = []AuditItem{}
	for looked := 0; looked < lookMost; looked += lookAt {
		rows, err := c.Store.AuditBefore(before, lookAt)
		if err != nil {
			return nil, 0, err
		}
		items, err := c.auditItems(rows)
		if err != nil {
			return nil, 0, err
		}
		for _, item := range items {
			if kind != "" && item.Kind != kind && !strings.HasPrefix(item.Kind, kind+".") {
				continue
			}
			if len(list) == limit {
				return list, list[len(list)-1].N, nil
			}
			list = append(list, item)
		}
		if len(rows) < lookAt {
			return list, 0, nil
		}
		before = rows[len(rows)-1].N
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
	}
	return list, before, nil
}

func (c *Control) auditItems(rows []workspace.AuditEntry) ([]AuditItem, error) {
	list := make([]AuditItem, 0, len(rows))
	names := map[workspace.PersonID]string{}
	for _, e := range rows {
		item := AuditItem{N: e.N, Chain: e.Chain, Prev: e.Prev, Hash: e.Hash, Body: string(e.Body), What: map[string]any{}}
		if row, err := e.Row(); err == nil { // else it is shown as it stands, and the check names it
			item.Time, item.Kind, item.Actor, item.Via, item.What = row.At.UTC(), row.Kind, string(row.Actor), row.Via, row.What
			if item.Name, err = c.nameOf(names, row.Actor); err != nil {
				return nil, err
			}
			item.By = workspace.Named(row.Actor, item.Name)
		}
		list = append(list, item)
	}
	return list, nil
}

// VerifyAudit reads the whole audit log and checks its chain; head, where it is not empty, is a row that was noted
// elsewhere, as number:hash, and must still be there.
func (c *Control) VerifyAudit(ctx context.Context, call Call, head string) (AuditCheck, error) {
	if err := c.may(call, "audit.verify"); err != nil {
		return AuditCheck{}, err
	}
	known, err := ParseHead(head)
	if err != nil {
		return AuditCheck{}, err
	}
	r, err := c.Store.VerifyAudit(ctx, known)
	if err != nil {
		return AuditCheck{}, err
	}
	return CheckOf(r), nil
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

// auditRow tells of an act of the caller.
func (c *Control) auditRow(call Call, kind string, what map[string]any) workspace.AuditRow {
	return workspace.AuditRow{At: c.Now(), Kind: kind, Actor: call.Actor.Person, Via: call.via(), What: what}
}

// via is the surface that a call came by.
func (c Call) via() string {
	switch {
	case c.Input == nil && c.Via != "":
		return c.Via
	case c.Input == nil:
		return ViaAPI
	case c.Input.Data.Channel != "":
		return c.Input.Data.Channel
	}
	return c.Input.Source
}

// Invited says whether the caller may make a way in for a browser, and keeps that it was made: who comes in by it is the
// local owner.
func (c *Control) Invited(_ context.Context, call Call) error {
	if err := c.may(call, "sign-in.code"); err != nil {
		return err
	}
	return c.Store.Audit(c.auditRow(call, workspace.AuditSignInCode, nil))
}

// SignedIn keeps that a browser came in, as the local owner, before it is let in. Whoever knows a code has no other right.
func (c *Control) SignedIn(_ context.Context, from string) error {
	err := c.Store.Audit(workspace.AuditRow{At: c.Now(), Kind: workspace.AuditSignIn, Via: "page", What: map[string]any{"from": from}})
	if err != nil {
		return fmt.Errorf("keep that a browser signed in: %w", err)
	}
	return nil
}
