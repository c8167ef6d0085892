// Sessions and their generations.

package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley/workspace"
)

// Create makes the first generation of a key. workspace.ErrConflict means that the key exists.
type Create struct {
	Key  workspace.Key
	Name string
	// Origin is one of a kind: a second Create with it finds what the first made. Empty: none.
	Origin string
}

// Rename gives the newest generation of a key its title.
type Rename struct {
	Session workspace.SessionID
	Name    string
}

// NewGeneration begins the next generation of a key: /new and /reset.
type NewGeneration struct{ Key workspace.Key }

// SetOverrides replaces a session's overrides, if they are still those of Was.
type SetOverrides struct {
	Session   workspace.SessionID // when the same command has just begun a generation, that one whatever stands here
	Overrides workspace.Overrides
	Was       *workspace.Overrides // nil: whatever they are
}

// Delete hides a key with all its generations; Session must be its newest. What runs is stopped by a Stop before it.
type Delete struct {
	Key     workspace.Key
	Session workspace.SessionID
}

// Mark stores an event that changes what the prompt holds: workspace.EventCompacted, workspace.EventUndone. The unit is
// refused with workspace.ErrConflict when a summary is not made behind the summary that it knew of, and when another
// line has come since something was undone.
type Mark struct {
	Session workspace.SessionID
	Body    workspace.EntryBody
	Last    int64 // of EventUndone: the entry that it was made behind
	Was     int64 // of EventCompacted: Session.Compacted as it was
}

type session struct {
	id  workspace.SessionID
	gen int
}

// session finds the newest generation of a key, or makes the first.
func (t *tx) session(key workspace.Key) (session, error) {
	c := &t.s.cache
	c.bound()
	text := key.String()
	if s, ok := c.sessions[text]; ok {
		return s, nil
	}
	var s session
	err := t.Row(`SELECT id, gen FROM sessions WHERE key = ? ORDER BY gen DESC LIMIT 1`, []any{text}, &s.id, &s.gen)
	if errors.Is(err, workspace.ErrNotFound) {
		return t.newGeneration(key, 1)
	}
	if err != nil {
		return session{}, err
	}
	c.sessions[text] = s
	return s, nil
}

func (t *tx) newGeneration(key workspace.Key, gen int) (session, error) {
	s := session{id: workspace.SessionID(t.s.ids.New()), gen: gen}
	_, err := t.Exec(`INSERT INTO sessions (id, key, gen, agent, name, partition, created) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		string(s.id), key.String(), s.gen, string(key.Agent), key.Name, key.Partition(), t.Now)
	if err != nil {
		return session{}, err
	}
	t.s.cache.bound()
	t.s.cache.sessions[key.String()] = s
	return s, nil
}

// nextGeneration ends the newest generation and makes the next. It keeps name and overrides; what waits behind the
// command, or is parked, belongs to it.
func (t *tx) nextGeneration(key workspace.Key, old session, origin string) (session, error) {
	if _, err := t.Exec(`UPDATE sessions SET ended = ? WHERE id = ?`, t.Now, string(old.id)); err != nil {
		return session{}, err
	}
	next, err := t.newGeneration(key, old.gen+1)
	if err != nil {
		return session{}, err
	}
	if err := t.One("keep what was set", `UPDATE sessions SET name = (SELECT o.name FROM sessions o WHERE o.id = ?),
		overrides = (SELECT o.overrides FROM sessions o WHERE o.id = ?), origin = ? WHERE id = ?`,
		string(old.id), string(old.id), null(origin), string(next.id)); err != nil {
		return session{}, err
	}
	_, err = t.Exec(`UPDATE inputs SET session_id = ? WHERE session_id = ? AND `+openInput+` AND state IN ('queued', 'stale')`,
		string(next.id), string(old.id))
	return next, err
}

// made finds what an earlier unit of the same origin made.
func (t *tx) made(origin string, did *Did) (bool, error) {
	if origin == "" {
		return false, nil
	}
	err := t.Row(`SELECT id FROM sessions WHERE origin = ?`, []any{origin}, &did.Session)
	if errors.Is(err, workspace.ErrNotFound) {
		return false, nil
	}
	did.Again = err == nil
	return did.Again, err
}

func (n NewGeneration) apply(t *tx, did *Did) error {
	old, err := t.session(n.Key)
	if err != nil {
		return err
	}
	next, err := t.nextGeneration(n.Key, old, "")
	did.Session, did.next = next.id, next.id
	return err
}

func (o SetOverrides) apply(t *tx, did *Did) error {
	body, err := json.Marshal(o.Overrides)
	if err != nil {
		return err
	}
	if did.Session != "" {
		o.Session = did.Session
	}
	if o.Was == nil {
		return t.One("set overrides", `UPDATE sessions SET overrides = ? WHERE id = ?`, string(body), string(o.Session))
	}
	was, err := json.Marshal(*o.Was)
	if err != nil {
		return err
	}
	return t.One("set overrides", `UPDATE sessions SET overrides = ? WHERE id = ? AND overrides = ?`, string(body), string(o.Session),
		string(was))
}

func (c Create) origin() string { return c.Origin }

func (c Create) apply(t *tx, did *Did) error {
	ses, err := t.fresh(c.Key)
	if err != nil {
		return err
	}
	did.Session = ses.id
	return t.One("name a session", `UPDATE sessions SET name = ?, origin = ?, hidden = 0 WHERE id = ?`, c.Name, null(c.Origin), string(ses.id))
}

// fresh is the first generation of a key, or the empty one that a Delete left.
func (t *tx) fresh(key workspace.Key) (session, error) {
	var gen, hidden, said int64
	var id string
	err := t.Row(`SELECT id, gen, hidden, (SELECT COUNT(*) FROM entries e WHERE e.session_id = s.id AND e.n = 1) FROM sessions s
		WHERE key = ? ORDER BY gen DESC LIMIT 1`, []any{key.String()}, &id, &gen, &hidden, &said)
	if errors.Is(err, workspace.ErrNotFound) {
		return t.newGeneration(key, 1)
	}
	if err == nil && (hidden == 0 || said > 0) {
		err = fmt.Errorf("session %s exists: %w", key, workspace.ErrConflict)
	}
	return session{id: workspace.SessionID(id), gen: int(gen)}, err
}

func (r Rename) apply(t *tx, _ *Did) error {
	return t.One("rename a session", `UPDATE sessions SET name = ? WHERE id = ? AND ended = 0`, r.Name, string(r.Session))
}

// apply leaves an empty generation behind, so that whoever writes there again begins afresh.
func (d Delete) apply(t *tx, did *Did) error {
	old, err := t.newest(d.Key, d.Session)
	if err != nil {
		return err
	}
	next, err := t.nextGeneration(d.Key, old, "")
	if err != nil {
		return err
	}
	did.Session, did.next = next.id, next.id
	if _, err := t.Exec(`UPDATE sessions SET hidden = 1 WHERE key = ?`, d.Key.String()); err != nil {
		return err
	}
	if err := t.One("forget what was set", `UPDATE sessions SET name = ?, overrides = '{}' WHERE id = ?`,
		d.Key.Name, string(next.id)); err != nil {
		return err
	}
	if _, err := t.Exec(`DELETE FROM reads WHERE session_key = ?`, d.Key.String()); err != nil {
		return err
	}
	_, err = t.Exec(`UPDATE rooms SET session_key = '' WHERE session_key = ?`, d.Key.String())
	return err
}

// newest is the key's newest generation, if that is the one that was seen.
func (t *tx) newest(key workspace.Key, seen workspace.SessionID) (session, error) {
	now, err := t.session(key)
	if err == nil && now.id != seen {
		err = fmt.Errorf("session %s has a newer generation: %w", key, workspace.ErrConflict)
	}
	return now, err
}

func (m Mark) apply(t *tx, _ *Did) error { return t.putMark(m) }

// putMark stores a mark where it was made for.
func (t *tx) putMark(m Mark) error {
	next, err := t.nextEntry(m.Session, 0)
	if err != nil {
		return err
	}
	if m.Body.Type == workspace.EventCompacted {
		err = t.One("note the summary", `UPDATE sessions SET compacted = ? WHERE id = ? AND compacted = ? AND ended = 0`, next, string(m.Session),
			m.Was)
	} else if next != m.Last+1 {
		err = fmt.Errorf("the transcript went on to %d: %w", next-1, workspace.ErrConflict)
	}
	if err == nil {
		_, err = t.appendEntries(m.Session, []workspace.Entry{{Role: workspace.RoleEvent, Body: m.Body}})
	}
	return err
}

// Mark commits a mark by itself; RunCommand does so with a reply.
func (s *Store) Mark(m Mark) error {
	return s.do("mark", func(t *tx) error { return t.putMark(m) })
}

const sessionColumns = `id, key, gen, agent, name, created, ended, hidden, compacted, forked_from, forked_before, overrides, usage`

func (s *Store) sessions(where string, args ...any) ([]workspace.Session, error) {
	var out []workspace.Session
	err := s.db.Many(`SELECT `+sessionColumns+` FROM sessions WHERE `+where, args, func(scan func(...any) error) error {
		var ses workspace.Session
		var key, overrides, usage string
		var created, ended int64
		err := scan(&ses.ID, &key, &ses.Gen, &ses.Agent, &ses.Name, &created, &ended, &ses.Hidden, &ses.Compacted, &ses.ForkedFrom,
			&ses.ForkedBefore, &overrides, &usage)
		if err != nil {
			return err
		}
		if ses.Key, err = parseKey(key); err != nil {
			return err
		}
		ses.Created, ses.Ended = fromMillis(created), fromMillis(ended)
		out = append(out, ses)
		last := &out[len(out)-1]
		return errors.Join(decode(overrides, &last.Overrides), decode(usage, &last.Tokens))
	})
	return out, err
}

// Session reads one generation.
func (s *Store) Session(id workspace.SessionID) (workspace.Session, error) {
	return firstSession(s.sessions(`id = ?`, string(id)))
}

// SessionByKey reads the newest generation of a key.
func (s *Store) SessionByKey(key workspace.Key) (workspace.Session, error) {
	return firstSession(s.sessions(`key = ? ORDER BY gen DESC LIMIT 1`, key.String()))
}

// SessionByOrigin finds what an earlier Create or Fork of the same origin made.
func (s *Store) SessionByOrigin(origin string) (workspace.Session, error) {
	return firstSession(s.sessions(`origin = ?`, origin))
}

func firstSession(list []workspace.Session, err error) (workspace.Session, error) {
	if err != nil {
		return workspace.Session{}, err
	}
	if len(list) == 0 {
		return workspace.Session{}, workspace.ErrNotFound
	}
	return list[0], nil
}

// Generations lists those of a key, newest first.
func (s *Store) Generations(key workspace.Key) ([]workspace.Session, error) {
	return s.sessions(`key = ? ORDER BY gen DESC`, key.String())
}
