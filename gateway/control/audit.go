package control

import (
	"context"
	"fmt"
	"math"
	"strings"

	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
)

// AuditIn says which rows of the audit log are wanted; with neither after nor before nor a kind the newest.
type AuditIn struct {
	Limit  int    `query:"limit" help:"the newest *many*" min:"1" max:"500" default:"50"`
	After  *int64 `query:"after" help:"only rows after this *number*, oldest first" min:"0"`
	Before *int64 `query:"before" help:"only rows before this *number*, newest first" min:"0"`
	Kind   string `query:"kind" help:"only this *kind* of row, or, as approval, all that begin so before their dot; newest first"`
}

var ListAudit = Verb[AuditIn, spec.List[AuditItem]]{
	Name: "audit", Rights: rights.Owners,
	Help: "List rows of the audit log, oldest first, the newest when after is left out; newest first with before or kind",
	HTTP: "GET /v1/audit", Group: "gateway",
	Do: func(ctx context.Context, c *Control, _ Call, in AuditIn) (spec.List[AuditItem], error) {
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
func (c *Control) auditBefore(ctx context.Context, in AuditIn) (spec.List[AuditItem], error) {
	l := spec.Whole[AuditItem](nil)
	before := int64(math.MaxInt64)
	if in.Before != nil {
		before = *in.Before
	}
	for looked := 0; looked < lookMost; looked += lookAt {
		rows, err := c.Store.AuditBefore(before, lookAt)
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
		if len(rows) < lookAt {
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

// HeadIn may name a row that was noted elsewhere.
type HeadIn struct {
	Head string `query:"head" help:"a row that must be there, as its number, a colon and its hash"`
}

// VerifyAudit reads the whole audit log and checks its chain; the head, where there is one, must still be there.
var VerifyAudit = Verb[HeadIn, AuditCheck]{
	Name: "audit.verify", Help: "Check the whole audit log", Rights: rights.Owners, HTTP: "GET /v1/audit/verify", Group: "gateway",
	Do: func(ctx context.Context, c *Control, _ Call, in HeadIn) (AuditCheck, error) {
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
