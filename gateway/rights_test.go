package gateway_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/workspace"
)

// What a cell of docs/rights.md may say, from nothing to everything.
var reach = map[string]int{"no": 0, "own direct": 1, "own": 2, "direct": 2, "yes": 3}

// right is a row of docs/rights.md.
type right struct {
	verb  string
	ways  []string
	roles map[string]string // owner, member, guest, nobody
}

func readRights(t *testing.T) []right {
	t.Helper()
	text, err := os.ReadFile("../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	var head []string
	var rows []right
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if head == nil {
			head = cells
			continue
		}
		if len(cells) != len(head) {
			t.Fatalf("%q has %d cells, want %d", line, len(cells), len(head))
		}
		r := right{verb: cells[0], roles: map[string]string{}}
		for i, way := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				r.ways = append(r.ways, way)
			} else if strings.TrimSpace(way) != "" {
				t.Errorf("%s: %q stands between its ways", r.verb, way)
			}
		}
		for i, cell := range cells[2:] {
			r.roles[head[i+2]] = cell
		}
		rows = append(rows, r)
	}
	if want := []string{"verb", "ways", "owner", "member", "guest", "nobody"}; !slices.Equal(head, want) {
		t.Fatalf("the table begins with %q, want %q", head, want)
	}
	return rows
}

func TestRightsTableIsWhole(t *testing.T) {
	t.Parallel()
	verbs, ways := map[string]bool{}, map[string]string{}
	for _, r := range readRights(t) {
		if verbs[r.verb] || r.verb == "" {
			t.Errorf("verb %q stands there twice, or has no name", r.verb)
		}
		verbs[r.verb] = true
		if len(r.ways) == 0 {
			t.Errorf("%s: nobody can reach it", r.verb)
		}
		for _, way := range r.ways {
			if ways[way] != "" {
				t.Errorf("%s leads to %s and to %s", way, ways[way], r.verb)
			}
			ways[way] = r.verb
		}
		for role, cell := range r.roles {
			if _, known := reach[cell]; !known {
				t.Errorf("%s: %s has %q", r.verb, role, cell)
			}
		}
	}
	for _, verb := range []string{"help", "whoami", "status", "why", "new", "reset", "stop", "resume", "queue", "pairing.approve", "config.show", "backup"} {
		if !verbs[verb] {
			t.Errorf("there is no verb %q among %v", verb, slices.Sorted(maps.Keys(verbs)))
		}
	}
}

// Nobody has more than a guest, a guest not more than a member, a member not more than an owner.
func TestRightsGrowWithTheRole(t *testing.T) {
	t.Parallel()
	order := []string{"nobody", "guest", "member", "owner"}
	for _, r := range readRights(t) {
		for i := range order[1:] {
			if low, high := r.roles[order[i]], r.roles[order[i+1]]; reach[low] > reach[high] {
				t.Errorf("%s: %s has %q, but %s %q", r.verb, order[i], low, order[i+1], high)
			}
		}
	}
}

// T01: what answers without a token is this list and no more.
func TestT01_OpenWaysAreTheKnownFew(t *testing.T) {
	t.Parallel()
	var open []string
	for _, r := range readRights(t) {
		if r.roles["nobody"] != "no" {
			open = append(open, r.ways...)
		}
	}
	want := []string{"GET /healthz", "GET /", "POST /v1/sign-in", "POST /channels/<name>/…", "GET /channels/<name>/…"}
	if !slices.Equal(open, want) {
		t.Errorf("open: %q\nwant: %q", open, want)
	}
}

// Control refuses and allows what the table says, for each role, in a DM, in a group and by HTTP. What answers without
// a token never comes to control.
func TestT10_ControlKeepsTheTableOfRights(t *testing.T) {
	t.Parallel()
	roles := map[string]workspace.Role{"owner": workspace.Owner, "member": workspace.Member, "guest": workspace.Guest, "nobody": workspace.Nobody}
	for _, r := range readRights(t) {
		if r.roles["nobody"] != "no" {
			continue
		}
		for name, role := range roles {
			cell := r.roles[name]
			for place, want := range map[channels.PeerKind]bool{
				"": cell != "no", channels.DM: cell != "no",
				channels.Group: cell == "yes" || cell == "own", channels.Room: cell == "yes" || cell == "own",
			} {
				call := control.Call{Actor: workspace.Actor{Person: "p", Role: role}, Kind: place}
				if got := control.New(control.Options{Verbs: all.Verbs()}).May(call, r.verb); got != want {
					t.Errorf("%s by %s in %q: control says %t, the table %q", r.verb, name, place, got, cell)
				}
			}
		}
	}
}

// A verb that control asks about by a name that the table does not have would be nobody's to review.
func TestEveryVerbOfControlIsInTheTable(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, r := range readRights(t) {
		listed[r.verb] = true
	}
	files, err := filepath.Glob("control/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of control, %v", len(files), err)
	}
	asked := regexp.MustCompile(`\.(?:Allow|May)\([^"\n]*"([^"]+)"`)
	found := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range asked.FindAllStringSubmatch(string(source), -1) {
			if found++; !listed[m[1]] {
				t.Errorf("%s asks about %q, which docs/rights.md does not list", name, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("control asks about %d verbs", found)
	}
}

// T09 and T10: only owners decide about pairing, and never in a group.
func TestT09_T10_OnlyOwnersDecideAboutPairingAndNotInGroups(t *testing.T) {
	t.Parallel()
	for _, r := range readRights(t) {
		if !strings.HasPrefix(r.verb, "pairing.") {
			continue
		}
		for role, cell := range r.roles {
			if want := map[bool]string{true: "direct", false: "no"}[role == "owner"]; cell != want {
				t.Errorf("%s: %s has %q, want %q", r.verb, role, cell, want)
			}
		}
	}
}
