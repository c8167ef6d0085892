// What lists show of sessions, and search in them.

package store

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/workspace"
)

// Head is the newest generation of a key with how far it has come.
type Head struct {
	ID      workspace.SessionID
	Key     workspace.Key
	Name    string
	Last    int64     // number of its newest entry; 0: none
	Updated time.Time // of that entry, else when it was made
}

// Compare orders heads by age, and those of one moment by id.
func (h Head) Compare(other Head) int {
	if c := h.Updated.Compare(other.Updated); c != 0 {
		return c
	}
	return strings.Compare(string(h.ID), string(other.ID))
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

// glimpseLines is how many lines of a session's beginning and of its end are looked at for what was said there.
const glimpseLines = 60

// Glimpse is what a list shows of a session: the first thing that a person said and the last thing that was said. Either
// is empty when there is none within the first or last lines: commands are not what was said.
func (s *Store) Glimpse(session workspace.SessionID) (first, last string, err error) {
	head, err := s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.n <= ? AND e.role = 'user' ORDER BY e.n LIMIT 3`,
		string(session), glimpseLines)
	if err != nil {
		return "", "", err
	}
	tail, err := s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.n > (SELECT MAX(x.n) FROM entries x WHERE x.session_id = ?) - ?
		AND e.role IN ('user', 'assistant') ORDER BY e.n DESC LIMIT 6`, string(session), string(session), glimpseLines)
	if err != nil {
		return "", "", err
	}
	for _, e := range head {
		if first == "" {
			first = e.Body.Plain()
		}
	}
	for _, e := range tail {
		if last == "" {
			last = e.Body.Plain()
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
