package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
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

// Fork begins a new generation of a key with a copy of what stands before entry Before of another one. Make it with
// Store.Fork, which reads the copy.
type Fork struct {
	Key     workspace.Key
	Session workspace.SessionID // the newest generation
	From    workspace.SessionID // the one that is copied
	Before  int64
	Origin  string // as Create's

	lines     []workspace.Entry
	compacted int64
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

// Place is what people changed for one room.
type Place struct {
	SessionKey string // the session that it was switched to; empty: its own
	Activation string // mention or always; empty: as configured
}

// SetPlace changes what is set for a room; nil leaves a value as it is.
type SetPlace struct {
	Room       workspace.RoomID
	SessionKey *string
	Activation *string
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
	return t.One("set overrides", `UPDATE sessions SET overrides = ? WHERE id = ? AND overrides = ?`, string(body), string(o.Session), string(was))
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
	if err := t.One("forget what was set", `UPDATE sessions SET name = ?, overrides = '{}' WHERE id = ?`, d.Key.Name, string(next.id)); err != nil {
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

// Fork reads what a fork copies: everything before the entry numbered before, without the beginning of a turn that
// would have nothing in it. It is stored as a Change. It returns workspace.ErrNotFound when the
// transcript does not reach that far.
func (s *Store) Fork(key workspace.Key, session workspace.SessionID, before int64, origin string) (*Fork, error) {
	f := &Fork{Key: key, Session: session, From: session, Before: before, Origin: origin}
	last, err := s.LastEntries(session, 1)
	if err != nil {
		return nil, err
	}
	if before < 1 || len(last) == 0 && before > 1 || len(last) == 1 && before > last[0].N+1 {
		return nil, fmt.Errorf("fork before entry %d: %w", before, workspace.ErrNotFound)
	}
	for len(f.lines) < int(before-1) {
		list, err := s.Entries(session, int64(len(f.lines)), int(min(before-1-int64(len(f.lines)), 1000)))
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, s.db.Seen(fmt.Errorf("session %s ends at entry %d: %w", session, len(f.lines), ErrDamaged))
		}
		f.lines = append(f.lines, list...)
	}
	f.lines = whole(f.lines)
	for i := range f.lines {
		e := &f.lines[i]
		e.InputID, e.Body.Usage = "", nil // each input has one entry, and what was spent is spent once; the copy holds the text
		if e.Role == workspace.RoleEvent && e.Body.Type == workspace.EventCompacted {
			f.compacted = e.N
		}
	}
	return f, nil
}

// whole drops the beginning of a turn at the end of a copy, and ends one that was cut in the middle.
func whole(lines []workspace.Entry) []workspace.Entry {
	started := func(e workspace.Entry) bool { return e.Role == workspace.RoleEvent && e.Body.Type == "turn.started" }
	for len(lines) > 0 && started(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		e := lines[i]
		if e.Role == workspace.RoleEvent && e.Body.Type == "turn.ended" {
			break
		}
		if started(e) {
			end := workspace.Entry{N: int64(len(lines)) + 1, RunID: e.RunID, Role: workspace.RoleEvent, At: lines[len(lines)-1].At,
				Body: workspace.EntryBody{Type: "turn.ended", Reason: endReason(workspace.RunStopped, "forked")}}
			return append(slices.Clip(lines), end)
		}
	}
	return lines
}

func (f Fork) origin() string { return f.Origin }

func (f Fork) apply(t *tx, did *Did) error {
	old, err := t.newest(f.Key, f.Session)
	if err != nil {
		return err
	}
	next, err := t.nextGeneration(f.Key, old, f.Origin)
	if err != nil {
		return err
	}
	did.Session, did.next = next.id, next.id
	if err := t.One("note the fork", `UPDATE sessions SET forked_from = ?, forked_before = ? WHERE id = ?`, string(f.From), f.Before, string(next.id)); err != nil {
		return err
	}
	if f.compacted > 0 {
		if err := t.One("keep the summary", `UPDATE sessions SET compacted = ? WHERE id = ?`, f.compacted, string(next.id)); err != nil {
			return err
		}
	}
	return t.copyEntries(next.id, f.lines)
}

// copyEntries stores lines of another transcript under their old numbers and times, which begin at 1 without a gap.
func (t *tx) copyEntries(session workspace.SessionID, lines []workspace.Entry) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := t.nextEntry(session, len(lines)); err != nil {
		return err
	}
	for chunk := range slices.Chunk(lines, maxEntryRows) {
		args := make([]any, 0, 10*maxEntryRows)
		for _, e := range chunk {
			body, err := json.Marshal(e.Body)
			if err != nil {
				return err
			}
			text := engine.Clean(string(body))
			row := len(args)
			args = append(args, string(session), e.N, string(e.RunID), e.StepN, nil, string(e.Role), millis(e.At))
			args = append(args, text, engine.Sum(text), engine.Seal(args[row:]...))
		}
		if _, err := t.Exec(insertEntries(len(chunk)), args...); err != nil {
			return err
		}
	}
	return nil
}

func (m Mark) apply(t *tx, _ *Did) error { return t.putMark(m) }

// putMark stores a mark where it was made for.
func (t *tx) putMark(m Mark) error {
	next, err := t.nextEntry(m.Session, 0)
	if err != nil {
		return err
	}
	if m.Body.Type == workspace.EventCompacted {
		err = t.One("note the summary", `UPDATE sessions SET compacted = ? WHERE id = ? AND compacted = ? AND ended = 0`, next, string(m.Session), m.Was)
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

func (p SetPlace) apply(t *tx, _ *Did) error {
	for _, x := range []struct {
		q  string
		to *string
	}{{`UPDATE rooms SET session_key = ? WHERE id = ?`, p.SessionKey}, {`UPDATE rooms SET activation = ? WHERE id = ?`, p.Activation}} {
		if x.to == nil {
			continue
		}
		if err := t.One("set a room", x.q, *x.to, string(p.Room)); err != nil {
			return err
		}
	}
	return nil
}

// PlaceOf reads what is set for an address; the zero Place for one that is not known yet.
func (s *Store) PlaceOf(a channels.Address) (p Place, err error) {
	err = s.db.One(`SELECT session_key, activation FROM rooms WHERE network = ? AND account = ? AND peer_kind = ? AND peer = ? AND thread = ?`,
		[]any{string(a.Network), string(a.Account), string(a.Kind), string(a.Peer), string(a.Thread)}, &p.SessionKey, &p.Activation)
	if errors.Is(err, workspace.ErrNotFound) {
		return Place{}, nil
	}
	return p, err
}

// PlaceIn reads what is set for a room.
func (s *Store) PlaceIn(room workspace.RoomID) (p Place, err error) {
	err = s.db.One(`SELECT session_key, activation FROM rooms WHERE id = ?`, []any{string(room)}, &p.SessionKey, &p.Activation)
	return p, err
}

// Head is the newest generation of a key with how far it has come.
type Head struct {
	ID      workspace.SessionID
	Key     workspace.Key
	Name    string
	Last    int64     // number of its newest entry; 0: none
	Updated time.Time // of that entry, else when it was made
}

// Heads lists the newest generation of every key that is not hidden, the last updated first. It costs two look-ups in
// an index for each.
func (s *Store) Heads() ([]Head, error) {
	var out []Head
	err := s.db.Many(`SELECT s.id, s.key, s.name, COALESCE(e.n, 0), COALESCE(e.at, s.created) FROM sessions s
		LEFT JOIN entries e ON e.session_id = s.id AND e.n = (SELECT MAX(x.n) FROM entries x WHERE x.session_id = s.id)
		WHERE s.ended = 0 AND (s.hidden = 0 OR e.n > 0)`, nil, func(scan func(...any) error) error {
		var h Head
		var key string
		var at int64
		if err := scan(&h.ID, &key, &h.Name, &h.Last, &at); err != nil {
			return err
		}
		var err error
		h.Key, err = parseKey(key)
		h.Updated = fromMillis(at)
		out = append(out, h)
		return err
	})
	slices.SortFunc(out, func(a, b Head) int { return b.Compare(a) })
	return out, err
}

// SessionByOrigin finds what an earlier Create or Fork of the same origin made.
func (s *Store) SessionByOrigin(origin string) (workspace.Session, error) {
	return firstSession(s.sessions(`origin = ?`, origin))
}

// Compare orders heads by age, and those of one moment by id.
func (h Head) Compare(other Head) int {
	if c := h.Updated.Compare(other.Updated); c != 0 {
		return c
	}
	return strings.Compare(string(h.ID), string(other.ID))
}

// Glimpse is what a list shows of a session: the first thing that a person said and the last thing that was said. Either
// is empty when there is none within the first or last lines.
func (s *Store) Glimpse(session workspace.SessionID) (first, last string, err error) {
	head, err := s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.n <= 8 ORDER BY e.n`, string(session))
	if err != nil {
		return "", "", err
	}
	tail, err := s.LastEntries(session, 6)
	if err != nil {
		return "", "", err
	}
	for _, e := range head {
		if first == "" && e.Role == workspace.RoleUser {
			first = e.Body.Plain()
		}
	}
	for _, e := range tail {
		if text := e.Body.Plain(); text != "" && (e.Role == workspace.RoleUser || e.Role == workspace.RoleAssistant) {
			last = text
		}
	}
	return first, last, nil
}

// mentionLines is how many of the newest lines of a session are searched.
const mentionLines = 5000

// Mentions says whether a person or the agent said a text in one of the newest 5,000 lines of a session, of which last
// is the newest. Letters match in either case.
func (s *Store) Mentions(session workspace.SessionID, last int64, text string) (bool, error) {
	patterns := likePatterns(text)
	if s.db.SQLite() && !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		patterns = patterns[:1] // its LIKE knows the case of these
	}
	where := make([]string, 0, 2*len(patterns))
	var likes []any
	for _, p := range patterns {
		where = append(where, `e.body LIKE ? ESCAPE '!'`, `i.text LIKE ? ESCAPE '!'`)
		likes = append(likes, jsonPattern(p), p)
	}
	q := `SELECT ` + entryRead + ` WHERE e.session_id = ? AND e.n <= ? AND e.n > ? AND e.role IN ('user', 'assistant')
		AND (` + strings.Join(where, " OR ") + `) ORDER BY e.n DESC LIMIT 100`
	want := strings.ToLower(text)
	for up := last; up > last-mentionLines; {
		list, err := s.entries(q, append([]any{string(session), up, last - mentionLines}, likes...)...)
		if err != nil || len(list) == 0 {
			return false, err
		}
		for _, e := range list { // what matched may be a word of JSON
			if strings.Contains(strings.ToLower(e.Body.Plain()), want) {
				return true, nil
			}
		}
		up = list[len(list)-1].N - 1
	}
	return false, nil
}

// likePatterns are the writings of a text that are looked for. SQLite's LIKE knows the case of ASCII letters only, and
// PostgreSQL's of none.
func likePatterns(text string) []string {
	escape := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")
	var out []string
	for _, s := range []string{text, strings.ToLower(text), strings.ToUpper(text), titled(text)} {
		if p := "%" + escape.Replace(s) + "%"; !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func titled(s string) string {
	r := []rune(strings.ToLower(s))
	if len(r) == 0 {
		return s
	}
	return strings.ToUpper(string(r[:1])) + string(r[1:])
}

// jsonPattern is a pattern as text stands inside JSON.
func jsonPattern(p string) string {
	b, err := json.Marshal(p)
	if err != nil { // a string always marshals
		return p
	}
	return strings.Trim(string(b), `"`)
}

// Generations lists those of a key, newest first.
func (s *Store) Generations(key workspace.Key) ([]workspace.Session, error) {
	return s.sessions(`key = ? ORDER BY gen DESC`, key.String())
}

// SessionUsage sums the ended runs of a generation whose last entry comes after the given number, and what else was spent
// in it.
func (s *Store) SessionUsage(session workspace.SessionID, after int64) (sum workspace.Usage, last int64, err error) {
	last = after
	err = s.db.Many(`SELECT e.n, e.run_id, e.body, COALESCE(r.usage, '') FROM entries e
		LEFT JOIN runs r ON r.id = e.run_id AND r.session_id = e.session_id AND r.last_n = e.n
		WHERE e.session_id = ? AND e.n > ? AND e.role = 'event' AND (r.id IS NOT NULL OR e.run_id = '') ORDER BY e.n`,
		[]any{string(session), after}, func(scan func(...any) error) error {
			var run, body, usage string
			if err := scan(&last, &run, &body, &usage); err != nil {
				return err
			}
			if run == "" {
				var b workspace.EntryBody
				if err := decode(body, &b); err != nil || b.Usage == nil {
					return err
				}
				sum = sum.Add(*b.Usage)
				return nil
			}
			var u workspace.Usage
			if err := decode(usage, &u); err != nil {
				return err
			}
			sum = sum.Add(u)
			return nil
		})
	return sum, last, err
}
