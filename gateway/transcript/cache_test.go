package transcript

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/channels"
	"parley/workspace"
)

// record is a store of one session.
type record struct {
	ses     workspace.Session
	entries []workspace.Entry
	said    []workspace.Input
	taken   int64
	err     error
	reads   int
}

func (r *record) Session(workspace.SessionID) (workspace.Session, error) {
	r.reads++
	return r.ses, r.err
}

func (r *record) SessionByKey(workspace.Key) (workspace.Session, error) {
	if r.ses.ID == "" {
		return workspace.Session{}, workspace.ErrNotFound
	}
	return r.ses, r.err
}

func (r *record) Entries(_ workspace.SessionID, after int64, limit int) ([]workspace.Entry, error) {
	from := slices.IndexFunc(r.entries, func(e workspace.Entry) bool { return e.N > after })
	return slices.Clone(r.entries[from:min(len(r.entries), from+limit)]), r.err
}

func (r *record) LastEntries(_ workspace.SessionID, limit int) ([]workspace.Entry, error) {
	return slices.Clone(r.entries[max(0, len(r.entries)-limit):]), r.err
}

func (r *record) LastTaken(workspace.SessionID) (int64, error) { return r.taken, r.err }

func (r *record) ContextInputs(_ workspace.SessionID, after int64, n int) (list []workspace.Input, err error) {
	for _, in := range r.said {
		if in.Seq > after {
			list = append(list, in)
		}
	}
	return list[max(0, len(list)-n):], r.err
}

func entry(n int64, text string) workspace.Entry {
	return workspace.Entry{N: n, Role: workspace.RoleUser, Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}}
}

func event(n int64, kind string, from, to int64, text string) workspace.Entry {
	e := entry(n, text)
	e.Role, e.Body.Type, e.Body.From, e.Body.To = workspace.RoleEvent, kind, from, to
	return e
}

func numbers(list []workspace.Entry) (n []int64) {
	for _, e := range list {
		n = append(n, e.N)
	}
	return n
}

func words(lines []workspace.ContextLine) string {
	var w []string
	for _, l := range lines {
		w = append(w, l.Text)
	}
	return strings.Join(w, " ")
}

// A session is read once, without what its summary stands for, what was undone, events, and the run that begins.
func TestLoadReadsWhatThePromptHolds(t *testing.T) {
	t.Parallel()
	mine := entry(9, "now")
	mine.RunID = "r"
	r := &record{ses: workspace.Session{ID: "s", Gen: 1, Compacted: 3, Overrides: workspace.Overrides{Model: "m"}}, entries: []workspace.Entry{
		entry(1, "a"), entry(2, "b"), event(3, workspace.EventCompacted, 1, 2, "a and b"), entry(4, "c"), entry(5, "d"), entry(6, "e"),
		event(7, workspace.EventUndone, 5, 6, ""), entry(8, "f"), mine,
	}}
	c := New(r)
	s, err := c.Load("k", "s", "r")
	if err != nil {
		t.Fatal(err)
	}
	if got := numbers(s.Append(nil)); !slices.Equal(got, []int64{4, 8}) || s.Summary() != "a and b" {
		t.Errorf("it holds %v behind %q", got, s.Summary())
	}
	if got := numbers(s.Append([]workspace.Entry{entry(10, "g"), event(11, "error", 0, 0, "")})); !slices.Equal(got, []int64{4, 8, 10}) {
		t.Errorf("and then %v", got)
	}
	if again, err := c.Load("k", "s", "q"); err != nil || again != s || r.reads != 1 {
		t.Errorf("it was read %d times, %v", r.reads, err)
	}
	sum, list, err := c.History(r.ses, 5)
	if err != nil || sum != (Summary{Text: "a and b", To: 2}) || !slices.Equal(numbers(list), []int64{8, 9}) { // the event that undid 5 and 6 is among the five
		t.Errorf("the record holds %v behind %+v, %v", numbers(list), sum, err)
	}
	if c.Overrides("k").Model != "m" || c.Overrides(workspace.Key{Agent: "a", Scope: workspace.ScopeLocal, Local: "x"}.String()).Model != "m" || c.Overrides("no key").Model != "" {
		t.Error("what is set for the session is not known")
	}
	s.Overflowed()
	if c.Forget("k"); !s.TooLong() {
		t.Error("it does not know that it is too long")
	}
	if fresh, err := c.Load("k", "s", "q"); err != nil || fresh == s || fresh.TooLong() || len(fresh.Append(nil)) != 3 {
		t.Errorf("after it was forgotten: %v", err)
	}
}

// A transcript that grows loses its older half at once, and what a caller was given stays as it was.
func TestATranscriptThatGrowsIsCutByHalf(t *testing.T) {
	t.Parallel()
	c := New(&record{ses: workspace.Session{ID: "s"}})
	s, err := c.Load("k", "s", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []workspace.Entry
	for n := range int64(MaxEntries) {
		got = s.Append([]workspace.Entry{entry(n, "x")})
	}
	before := numbers(got)
	if len(before) != MaxEntries {
		t.Fatalf("%d entries", len(before))
	}
	if got := s.Append([]workspace.Entry{entry(MaxEntries, "x")}); len(got) != MaxEntries/2 || got[len(got)-1].N != MaxEntries {
		t.Errorf("%d entries after the cut", len(got))
	}
	if !slices.Equal(numbers(got), before) {
		t.Error("what was given has changed")
	}
	if want := (MaxEntries / 2) * entrySize(entry(0, "x")); s.Size() != want || c.size != want {
		t.Errorf("it counts %d and %d bytes, want %d", s.Size(), c.size, want)
	}
}

// All sessions together stay within the bound, and what is counted is what is there.
func TestSessionsGiveWayToOneAnother(t *testing.T) {
	t.Parallel()
	c := New(&record{ses: workspace.Session{ID: "s"}})
	big := strings.Repeat("x", maxBytes/4)
	for i := range 40 {
		s, err := c.Load(fmt.Sprint(i), "s", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Append([]workspace.Entry{entry(1, big)}); len(got) != 1 {
			t.Fatalf("session %d has %d entries", i, len(got))
		}
		sum := 0
		for _, s := range c.byKey {
			sum += s.size
		}
		if sum != c.size || sum > maxBytes {
			t.Fatalf("after session %d: %d bytes are counted, %d are there", i, c.size, sum)
		}
	}
}

// What others said is read once after a start, is quoted until a turn has stored it, and follows edits and deletions.
func TestWhatOthersSaidIsQuotedUntilATurnHasIt(t *testing.T) {
	t.Parallel()
	key := workspace.Key{Agent: "a", Scope: workspace.ScopeAddress, Network: "n", Account: "b", Kind: channels.Group, Peer: "p"}
	r := &record{ses: workspace.Session{ID: "s", Gen: 1}, taken: 3}
	for i := range int64(30) {
		r.said = append(r.said, workspace.Input{Seq: i, Sender: "ben", Text: fmt.Sprint(i)})
	}
	c := New(r)
	lines, last, err := c.Said(key)
	if err != nil || len(lines) != maxContext || last != maxContext || lines[0].Text != "10" {
		t.Fatalf("%q up to %d, %v", words(lines), last, err)
	}
	k := key.String()
	c.Note(k, 30, workspace.ContextLine{Text: "new"})
	c.Note(k, 31, workspace.ContextLine{Text: "gone"})
	c.Amend(k, 30, "newer")
	c.Amend(k, 31, "")
	c.Heard(k, last)
	if lines, _, err = c.Said(key); err != nil || words(lines) != "newer" {
		t.Errorf("after the turn %q, %v", words(lines), err)
	}
	r.err = errors.New("the disk is gone")
	if lines, _, err = c.Said(key); err != nil || words(lines) != "newer" {
		t.Errorf("it asks the record again: %q, %v", words(lines), err)
	}
	c.Forget(k)
	if _, _, err = c.Said(key); err == nil {
		t.Error("the record's error is not told")
	}
	dm := key
	dm.Kind = channels.DM
	c.Note(dm.String(), 0, workspace.ContextLine{Text: "too many"})
	if lines, _, err = c.Said(dm); err != nil || words(lines) != "too many" {
		t.Errorf("in a direct chat %q, %v", words(lines), err)
	}
}

func TestASessionIsFreshUntilItsFirstTurn(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		record
		want bool
	}{
		"unknown":          {record{}, true},
		"nothing taken":    {record{ses: workspace.Session{ID: "s", Gen: 1}}, true},
		"a turn":           {record{ses: workspace.Session{ID: "s", Gen: 1}, taken: 4}, false},
		"a second session": {record{ses: workspace.Session{ID: "s", Gen: 2}}, false},
	} {
		if got, err := New(&r.record).Fresh(workspace.Key{}); err != nil || got != r.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}
