// Linking: two network users become one person, and person local the first owner.

package store

import (
	"errors"
	"strings"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

// AskLink issues a code by which somebody else may be joined with a person. It replaces an earlier one of theirs.
type AskLink struct {
	Person   workspace.PersonID
	Network  channels.Network // where it is asked
	Room     workspace.RoomID // that hears of the link; empty: none
	CodeHash string
}

// GiveLink redeems a code.
type GiveLink struct {
	Person   workspace.PersonID // who gives it
	CodeHash string             // empty: what was typed cannot be a code
	Life     time.Duration      // of a code
	Tries    int                // wrong codes that one person may give in the life of a code
	Audit    workspace.AuditRow // kept if they are joined, with who and whom
	Notice   string             // what the asking room is told
}

// apply stores a code.
func (a AskLink) apply(t *tx, _ *Did) error {
	_, err := t.Exec(`INSERT INTO links (person_id, network, room_id, code_hash, issued) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (person_id) DO UPDATE SET network = excluded.network, room_id = excluded.room_id, code_hash = excluded.code_hash,
		issued = excluded.issued`, string(a.Person), string(a.Network), string(a.Room), a.CodeHash, t.Now)
	return err
}

// apply takes a code off, if it fits and lives, and joins the two. A code that fits nowhere is a try of who gave it.
func (g GiveLink) apply(t *tx, did *Did) error {
	did.Joined = workspace.Joined{Outcome: workspace.LinkWrong}
	tries, err := t.linkTries(g)
	if err != nil {
		return err
	}
	if tries >= g.Tries {
		did.Joined.Outcome = workspace.LinkTries
		return nil
	}
	var asker, network, room string
	err = t.Row(`UPDATE links SET code_hash = '' WHERE code_hash = ? AND code_hash <> '' AND issued > ? AND issued <= ?
		RETURNING person_id, network, room_id`, []any{g.CodeHash, t.Now - g.Life.Milliseconds(), t.Now}, &asker, &network, &room)
	if errors.Is(err, workspace.ErrNotFound) {
		return t.linkTried(g, tries)
	}
	if err != nil {
		return err
	}
	did.Joined.With = channels.Network(network)
	if err := t.mergePeople(workspace.PersonID(asker), g.Person, &did.Joined); err != nil || did.Joined.Outcome != workspace.Linked {
		return err
	}
	row := g.Audit
	row.What = map[string]any{"into": string(did.Joined.Into), "from": string(did.Joined.From), "asked": asker, "given": string(g.Person)}
	if err := t.audit(row); err != nil {
		return err
	}
	return t.outbounds([]NewOutbound{{Key: "send:link:" + t.s.ids.New(), RoomID: workspace.RoomID(room), Kind: workspace.OutMessage,
		Text: g.Notice, Spans: []Span{{To: len(g.Notice)}}}}, &did.Told)
}

// linkTries counts the wrong codes that somebody gave within the life of one.
func (t *tx) linkTries(g GiveLink) (int, error) {
	var tries, since int64
	err := t.Row(`SELECT tries, tried FROM links WHERE person_id = ?`, []any{string(g.Person)}, &tries, &since)
	if errors.Is(err, workspace.ErrNotFound) || err == nil && (t.Now-since >= g.Life.Milliseconds() || t.Now < since) {
		return 0, nil
	}
	return int(tries), err
}

func (t *tx) linkTried(g GiveLink, before int) error {
	_, err := t.Exec(`INSERT INTO links (person_id, tries, tried) VALUES (?, 1, ?) ON CONFLICT (person_id) DO UPDATE SET
		tries = ?, tried = CASE WHEN ? = 0 THEN excluded.tried ELSE links.tried END`, string(g.Person), t.Now, before+1, before)
	return err
}

// party is a person as a link sees them.
type party struct {
	id         workspace.PersonID
	role       workspace.Role
	configured bool
}

// party follows who somebody has become since.
func (t *tx) party(id workspace.PersonID) (p party, err error) {
	for range 100 { // a chain is as long as there were links, and has no ring: who was joined is never joined into
		var configured int64
		var next string
		p.id = id
		if err = t.Row(`SELECT role, configured, joined FROM people WHERE id = ?`, []any{string(id)}, &p.role, &configured, &next); err != nil {
			return p, err
		}
		p.configured = configured == 1
		if next == "" {
			return p, nil
		}
		id = workspace.PersonID(next)
	}
	return p, workspace.ErrConflict
}

// mergePeople makes two people one. Who the configuration names stays, else who has the greater role, else who asked. Each
// account of the other keeps the rights that it has, and gets no others: accounts.most bounds them.
func (t *tx) mergePeople(asker, giver workspace.PersonID, out *workspace.Joined) error {
	a, err := t.party(asker)
	if err == nil {
		var g party
		if g, err = t.party(giver); err == nil {
			return t.unite(a, g, out)
		}
	}
	if errors.Is(err, workspace.ErrNotFound) {
		out.Outcome = workspace.LinkStranger
		return nil
	}
	return err
}

func (t *tx) unite(into, from party, out *workspace.Joined) error {
	if into.id == from.id {
		out.Outcome = workspace.LinkSame
		return nil
	}
	if from.configured && !into.configured || from.configured == into.configured && !into.role.AtLeast(from.role) {
		into, from = from, into
	}
	if from.configured || !into.role.AtLeast(from.role) {
		out.Outcome = workspace.LinkConfigured
		return nil
	}
	if err := t.One("join a person", `UPDATE people SET joined = ? WHERE id = ? AND joined = '' AND configured = 0`,
		string(into.id), string(from.id)); err != nil {
		return err
	}
	// Of those that a former link has bounded the bound stays: it is the lesser one, or as great.
	if _, err := t.Exec(`UPDATE accounts SET most = ? WHERE person_id = ? AND most = ''`, string(from.role), string(from.id)); err != nil {
		return err
	}
	if _, err := t.Exec(`UPDATE accounts SET person_id = ? WHERE person_id = ?`, string(into.id), string(from.id)); err != nil {
		return err
	}
	if _, err := t.Exec(`DELETE FROM links WHERE person_id = ?`, string(from.id)); err != nil {
		return err
	}
	if err := t.joinReads(into.id, from.id); err != nil {
		return err
	}
	*out = workspace.Joined{Outcome: workspace.Linked, Into: into.id, From: from.id, With: out.With}
	return nil
}

// approveJoined gives an account of a person who has several the role that an operator approved, and the others none of it.
func (t *tx) approveJoined(acc *workspace.Account, role workspace.Role) (joined bool, err error) {
	var others int64
	err = t.Row(`SELECT COUNT(*) FROM accounts WHERE person_id = ? AND NOT (network = ? AND account = ? AND "user" = ?)`,
		[]any{string(acc.Person), string(acc.Network), string(acc.Account), string(acc.User)}, &others)
	if err != nil || others == 0 {
		return false, err
	}
	p, err := t.party(acc.Person)
	if err != nil {
		return false, err
	}
	if p.configured { // what the configuration says of a person is not overruled here: it bounds what was approved
		_, err = t.Exec(`UPDATE accounts SET most = ? WHERE network = ? AND account = ? AND "user" = ? AND most <> ''`,
			string(role), string(acc.Network), string(acc.Account), string(acc.User))
		return true, err
	}
	if _, err := t.Exec(`UPDATE accounts SET most = ? WHERE person_id = ? AND most = ''`, string(p.role), string(p.id)); err != nil {
		return false, err
	}
	if _, err := t.Exec(`UPDATE accounts SET most = ? WHERE network = ? AND account = ? AND "user" = ?`,
		string(role), string(acc.Network), string(acc.Account), string(acc.User)); err != nil {
		return false, err
	}
	if role.AtLeast(p.role) {
		_, err = t.Exec(`UPDATE people SET role = ? WHERE id = ? AND configured = 0`, string(role), string(p.id))
	}
	return true, err
}

// settleLocal has person local own this machine while nobody else does. The first owner who is made takes over all that is local's, and
// local is them from then on; of several the one whom the configuration names first, else who is known for the longest. named
// are those whom it names, in its order; nil: they are as they were.
func (t *tx) settleLocal(named []workspace.Person) error {
	for _, p := range named {
		if p.ID == workspace.LocalOwner { // a person like others
			return nil
		}
	}
	heir, known, err := t.heir(named)
	if err != nil {
		return err
	}
	if heir == "" {
		_, err := t.Exec(`INSERT INTO people (id, role, name, created, configured) VALUES (?, 'owner', ?, ?, 1)
			ON CONFLICT (id) DO UPDATE SET role = 'owner', name = excluded.name, configured = 1, joined = ''`,
			workspace.LocalOwner, workspace.LocalOwner, t.Now)
		return err
	}
	n, err := t.Exec(`INSERT INTO people (id, role, name, created, configured, joined) VALUES (?, 'guest', ?, ?, 0, ?)
		ON CONFLICT (id) DO UPDATE SET role = 'guest', configured = 0, joined = excluded.joined WHERE people.joined <> excluded.joined`,
		workspace.LocalOwner, workspace.LocalOwner, t.Now, string(heir))
	if err != nil || n == 0 || !known { // it is so, or local never was
		return err
	}
	if err := t.takeOver(heir); err != nil {
		return err
	}
	return t.audit(workspace.AuditRow{Kind: workspace.AuditPeopleLinked, Via: "gateway",
		What: map[string]any{"into": string(heir), "from": workspace.LocalOwner}})
}

// heir is who local is, or is to be, and whether there ever was a local; empty: themselves.
func (t *tx) heir(named []workspace.Person) (id workspace.PersonID, known bool, err error) {
	now, err := t.party(workspace.LocalOwner)
	if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return "", false, err
	}
	known = err == nil
	if known && now.id != workspace.LocalOwner && now.role == workspace.Owner {
		return now.id, known, nil
	}
	for _, p := range named {
		if p.Role == workspace.Owner {
			return p.ID, known, nil
		}
	}
	err = t.Row(`SELECT id FROM people WHERE role = 'owner' AND joined = '' AND id <> ? ORDER BY configured DESC, created, id LIMIT 1`,
		[]any{workspace.LocalOwner}, &id)
	if errors.Is(err, workspace.ErrNotFound) {
		err = nil
	}
	return id, known, err
}

// takeOver makes all that is local's somebody else's: what was said and asked for, grants, files that were sent here, answers to
// keys, linked accounts, and the rooms of pages. Sessions and folders are named by agents: owners share them.
func (t *tx) takeOver(heir workspace.PersonID) error {
	for table, owner := range map[string]string{"inputs": "person_id", "runs": "requester", "approvals": "requester"} {
		if err := t.give(table, owner, heir); err != nil {
			return err
		}
	}
	for _, q := range []string{
		`UPDATE uploads SET person_id = ? WHERE person_id = ? AND ref NOT IN (SELECT ref FROM uploads WHERE person_id = ?)`,
		`UPDATE answers SET person_id = ? WHERE person_id = ? AND key NOT IN (SELECT key FROM answers WHERE person_id = ?)`,
		`UPDATE rooms SET account = ? WHERE account = ? AND peer NOT IN (SELECT peer FROM rooms WHERE account = ?)`,
		`UPDATE accounts SET person_id = ? WHERE person_id = ? AND person_id <> ?`,
	} {
		if _, err := t.Exec(q, string(heir), workspace.LocalOwner, string(heir)); err != nil {
			return err
		}
	}
	if err := t.joinReads(heir, workspace.LocalOwner); err != nil {
		return err
	}
	_, err := t.Exec(`DELETE FROM links WHERE person_id = ?`, workspace.LocalOwner)
	t.s.cache.reset() // rooms have other addresses
	return err
}

// give makes the sealed rows of a table that are local's another's, and seals them again. Pieces bound what is held in memory.
func (t *tx) give(table, owner string, heir workspace.PersonID) error {
	columns := map[string]string{"inputs": sealedInput, "runs": sealedRun, "approvals": sealedApproval}[table]
	names := strings.Fields(strings.ReplaceAll(columns, ",", " "))
	from := any("")
	if table == "inputs" {
		from = int64(0)
	}
	q := `SELECT ` + columns + ` FROM ` + table + ` WHERE ` + names[0] + ` > ? AND ` + owner + ` = ? ORDER BY ` + names[0] + ` LIMIT 500`
	for {
		var rows [][]any
		err := t.Rows(q, []any{from, workspace.LocalOwner}, func(scan func(...any) error) error {
			row, into := make([]any, len(names)), make([]any, len(names))
			for i := range row {
				into[i] = &row[i]
			}
			rows = append(rows, row)
			return scan(into...)
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			from = row[0]
			if err := t.giveRow(table, owner, names, row, heir); err != nil {
				return err
			}
		}
	}
}

// giveRow does it with one. Of the gateway's own networks an account is a person too.
func (t *tx) giveRow(table, owner string, names []string, row []any, heir workspace.PersonID) error {
	set, args := ``, []any{}
	for i, name := range names {
		if name == "account" && row[i] == workspace.LocalOwner { // source, account, key: a page may have sent the same as both
			var twin int64
			const q = `SELECT seq FROM inputs WHERE source = ? AND account = ? AND key = ?`
			err := t.Row(q, []any{row[i-1], string(heir), row[i+1]}, &twin)
			if err == nil {
				continue
			}
			if !errors.Is(err, workspace.ErrNotFound) {
				return err
			}
		}
		if row[i] == workspace.LocalOwner && (name == owner || name == "account") {
			row[i] = string(heir)
			set, args = set+name+` = ?, `, append(args, row[i])
		}
	}
	args = append(args, engine.Seal(row...), row[0])
	return t.One("give a row of "+table, `UPDATE `+table+` SET `+set+`seal = ? WHERE `+names[0]+` = ?`, args...)
}
