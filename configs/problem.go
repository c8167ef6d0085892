package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with the configuration. Its text never holds a credential.
type Problem struct {
	Path string // such as channels[0].token; empty: the file as a whole
	Line int    // in the file, from 1; 0: not in the file
	Env  string // the environment variable that gave the value, if one did
	Text string
}

func (p Problem) Error() string {
	s := p.Text
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	switch {
	case p.Env != "":
		s += " (environment variable " + p.Env + ")"
	case p.Line > 0:
		s += fmt.Sprintf(" (line %d)", p.Line)
	}
	return s
}

// Error is everything that is wrong at once, sorted by line.
type Error struct {
	File     string // empty: no file
	Problems []Problem
}

func (e *Error) Error() string {
	where := e.File
	if where == "" {
		where = "without a file"
	}
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, "configuration "+where+":")
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the problems one by one.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// place is where a value came from.
type place struct {
	line int
	env  string
}

// report gathers problems and knows where each path was written.
type report struct {
	file     string
	inFile   bool
	places   map[string]place
	raw      map[string]string // values as written, where expanding ${…} changed them
	masks    []string          // pairs of an expanded value and how it was written
	failed   map[string]bool   // paths that have a problem: one each is enough
	problems []Problem
}

func newReport(file string, inFile bool) *report {
	return &report{file: file, inFile: inFile, places: map[string]place{}, raw: map[string]string{}, failed: map[string]bool{}}
}

// add notes a problem, unless the path has one already.
func (r *report) add(path, format string, args ...any) {
	if r.failed[path] {
		return
	}
	r.failed[path] = true
	at := r.find(path)
	text := strings.NewReplacer(r.masks...).Replace(fmt.Sprintf(format, args...))
	r.problems = append(r.problems, Problem{Path: path, Line: at.line, Env: at.env, Text: text})
}

// expanded notes that raw, as written, became value. Problems show what was written: the value may be a credential.
func (r *report) expanded(path, raw, value string) {
	r.raw[path] = raw
	if len(value) >= 6 { // a shorter one would hide pieces of innocent words
		r.masks = append(r.masks, value, raw, strings.Trim(strconv.Quote(value), `"`), raw)
	}
}

// addAt notes a problem at a line, beside others of the same path.
func (r *report) addAt(line int, path, format string, args ...any) {
	r.failed[path] = true
	r.problems = append(r.problems, Problem{Path: path, Line: line, Text: fmt.Sprintf(format, args...)})
}

// find is the place of the path or of the nearest thing around it.
func (r *report) find(path string) place {
	for {
		if at, ok := r.places[path]; ok {
			return at
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	if r.inFile {
		return place{line: 1}
	}
	return place{}
}

// quote shows the value at path as it was written: what ${…} stands for may be a credential.
func (r *report) quote(path, value string) string {
	if raw := r.raw[path]; raw != "" {
		return quote(raw)
	}
	return quote(value)
}

// broken says that a list, one of its items, or that field of one could not be read, so that what refers to it cannot be
// judged.
func (r *report) broken(list, field string) bool {
	for failed := range r.failed {
		rest, ok := strings.CutPrefix(failed, list)
		if !ok || rest != "" && rest[0] != '[' {
			continue
		}
		if _, below, ok := strings.Cut(rest, "]"); !ok || below == "" || below == "."+field {
			return true
		}
	}
	return false
}

// err is nil when there is no problem, else a *Error.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
	return &Error{File: r.file, Problems: r.problems}
}

// nearest is the candidate that word was probably meant to be; empty when none is close.
func nearest(word string, candidates []string) string {
	best, closest := "", len(word)/5+2
	for _, c := range candidates {
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < closest && d < len(c) {
			best, closest = c, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their neighbour between two words.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// didYouMean ends a sentence with the likely word, or with all of them when they are few.
func didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 {
		return "there are none"
	}
	sorted := slices.Sorted(slices.Values(known))
	if len(sorted) > 12 {
		return "known: " + strings.Join(sorted[:12], ", ") + ", …"
	}
	return "known: " + strings.Join(sorted, ", ")
}
