package channeltest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
)

func allRequired(Capability) Need { return Required }

func memConfig() config {
	return config{needs: allRequired, patience: 10 * time.Second, brief: 3 * time.Second}
}

func TestCorrectAdapterPasses(t *testing.T) { runAll(t, memHarness{}, memConfig()) }

func TestIdempotentAdapterPasses(t *testing.T) {
	runAll(t, memHarness{idempotent: true, wrap: func(a *memAdapter) channels.Channel {
		return struct { // all but Find
			channels.Channel
			channels.Editor
			channels.Deleter
			channels.Streamer
			channels.Typer
			channels.Reactor
			channels.Opener
			channels.Historian
			channels.MenuPublisher
			channels.Linker
			channels.Checker
			channels.Describer
			channels.Accounter
		}{a, a, a, a, a, a, a, a, a, a, a, a, a}
	}}, memConfig())
}

// saboteurs names, for each check, adapters that it must refuse.
func saboteurs() map[string][]string {
	return map[string][]string{
		"T08 a message arrives whole":                           {"nameless sender"},
		"R03 a message offered again is equal":                  {"key of the delivery"},
		"R03 different messages have different keys":            {"key of the message id only"},
		"R01 nothing is acknowledged while the gateway is busy": {"acknowledges first", "drops what is refused"},
		"R01 what was not taken comes again after a restart":    {"acknowledges first", "acknowledges what failed"},
		"what was taken is acknowledged":                        {"never acknowledges"},
		"messages keep their order":                             {"turns the order"},
		"a panic in Receive takes nothing and stops nothing":    {"lets panics out"},
		"a group message names its group":                       {"forgets the group"},
		"a thread message names its thread":                     {"forgets the thread"},
		"a mention of the bot is told and removed":              {"mention left in the text", "mention by substring"},
		"own messages are not heard":                            {"hears itself"},
		"an unreadable event is passed on and passed by":        {"swallows what it cannot read"},
		"R03 a message has the key of its id":                   {"key of the message id only", "key in a form of its own"},
		"T08 an edit means its message by the key":              {"key in a form of its own"},
		"T08 a deletion means its message by the key":           {"key in a form of its own"},
		"T08 a reaction means its message by the key":           {"key in a form of its own"},
		"T08 a reply means what it answers by the key":          {"key in a form of its own"},
		"a reply quotes what it answers":                        {"quotes nothing"},
		"an edit names the edited message":                      {"edits are new messages"},
		"a deletion names the deleted message":                  {"deletions have no target"},
		"a reaction names its message":                          {"reactions are empty"},
		"a pressed button gives its value":                      {"buttons give their label", "drops buttons"},
		"a command is marked as one":                            {"commands are texts", "takes other bots' commands"},
		"a file arrives with its bytes":                         {"opens half of it"},
		"T18 a file larger than announced is refused":           {"opens more than announced"},
		"T18 only what the network issued is opened":            {"opens anything", "fetches addresses"},
		"T15 a text fetches nothing and rings nobody":           {"previews links", "rings everyone"},
		"T15 an edit fetches nothing and rings nobody":          {"previews edited links"},
		"an album is one album":                                 {"one album each"},
		"a room that moves tells its new id":                    {"moves nowhere", "every failure is unknown"},
		"a text arrives as it was sent":                         {"changes the text"},
		"a text goes to its thread":                             {"sends to the group's root"},
		"a reply answers its message":                           {"replies to nothing"},
		"the longest text is taken and a longer one refused":    {"cuts long texts", "every failure is unknown"},
		"sends at once do not disturb each other":               {"cannot send twice at once"},
		"a send ends with its context":                          {"sends without its context"},
		"refused markup is sent plain":                          {"has no plain words"},
		"an edit replaces the text":                             {"edits nothing"},
		"an edit to the same text succeeds":                     {"fails on the same text"},
		"an edit of what is gone is a bad message":              {"edits what is gone", "every failure is unknown"},
		"a deletion takes the message away":                     {"deletes nothing"},
		"deleting what is gone succeeds":                        {"fails on what is gone"},
		"a reaction is put and taken":                           {"keeps its reactions"},
		"typing is shown where it is meant":                     {"types elsewhere", "never repeats typing"},
		"a file goes out with its text":                         {"tells the reference of files", "leaves files open"},
		"the menu shows the commands":                           {"shows one command"},
		"a stream grows and is never rewritten":                 {"rewrites its stream"},
		"R05 a post that may have been sent is not doubled":     {"finds everything", "tries again by itself", "sends without its token"},
		"history gives the root and the last messages":          {"forgets the root"},
		"login shows the steps":                                 {"logs in silently"},
		"a check finds a working account":                       {"finds everything wrong"},
		"a check finds a refused account":                       {"finds nothing wrong"},
		"R05 a flood wait is retry":                             {"tries again by itself"},
		"a flood wait tells its time":                           {"forgets how long to wait"},
		"R05 a swallowed answer is unknown and not repeated":    {"every failure is retry", "tries again by itself"},
		"R05 a server error is unknown and not repeated":        {"every failure is retry", "tries again after server errors"},
		"an answer in no format is unknown":                     {"every failure is retry"},
		"never connected is retry":                              {"every failure is unknown"},
		"a peer that is gone does not take the channel along":   {"every failure is fatal"},
		"a refused account is fatal":                            {"every failure is unknown", "goes on without an account", "fatal without a hint"},
		"a dropped connection is made again":                    {"gives up after a cut"},
		"a network that was away is found again":                {"gives up when nobody listens"},
		"no connection is no end of Run":                        {"fatal when nobody listens"},
		"R14 cancel ends an idle adapter":                       {"leaves a goroutine", "returns the context's error", "deaf to cancel"},
		"cancel ends an adapter whose offer is open":            {"waits for the gateway for ever"},
		"cancel ends an adapter that nobody answers":            {"deaf to cancel"},
		"T03 no secret is told":                                 {"names its token in errors", "tells its token"},
		"traits are sane":                                       {"has no pace"},
	}
}

// TestSuiteBites: each check refuses each of its saboteurs, and no check is without one.
func TestSuiteBites(t *testing.T) {
	all := saboteurs()
	cfg := config{needs: allRequired, patience: 300 * time.Millisecond, brief: 200 * time.Millisecond}
	for _, c := range checks() {
		if len(all[c.name]) == 0 {
			t.Errorf("no saboteur for %q", c.name)
		}
		for _, bad := range all[c.name] {
			t.Run(c.name+"/"+bad, func(t *testing.T) {
				h := memHarness{bad: bad, idempotent: bad == "sends without its token"}
				if h.idempotent {
					h.wrap = func(a *memAdapter) channels.Channel {
						return struct {
							channels.Channel
							channels.Describer
						}{a, a}
					}
				}
				rec := record(t.Context(), func(rt T) { runOne(rt, h, cfg, c) })
				if !rec.failed {
					t.Errorf("passes although the adapter %s", bad)
				}
				t.Logf("refused: %s", strings.Join(rec.log, "; "))
			})
		}
		delete(all, c.name)
	}
	for name := range all {
		t.Errorf("saboteurs of the unknown check %q", name)
	}
}

func TestLackingARequiredCapabilityFails(t *testing.T) {
	bare := memHarness{wrap: func(a *memAdapter) channels.Channel { return struct{ channels.Channel }{a} }}
	for need, fails := range map[Need]bool{Required: true, Possible: false, Absent: false} {
		for _, c := range checks() {
			if claims(struct{ channels.Channel }{}, c.of) != no {
				continue // only behaviour shows it
			}
			cfg := memConfig()
			cfg.needs = func(Capability) Need { return need }
			rec := record(t.Context(), func(rt T) { runOne(rt, bare, cfg, c) })
			if rec.failed != fails {
				t.Errorf("%s, %q lacking: failed %v, want %v: %v", need, c.of, rec.failed, fails, rec.log)
			}
		}
	}
}

func TestClaimingAnAbsentCapabilityFails(t *testing.T) {
	cfg := memConfig()
	cfg.needs = func(Capability) Need { return Absent }
	for _, c := range checks() {
		rec := record(t.Context(), func(rt T) { runOne(rt, memHarness{}, cfg, c) })
		if want := claims(&memAdapter{net: &memNet{}}, c.of) == yes; rec.failed != want {
			t.Errorf("%q absent and claimed: failed %v, want %v", c.of, rec.failed, want)
		}
	}
}

func TestSkipsAreCounted(t *testing.T) {
	cfg := memConfig()
	var sum summary
	for _, c := range checks() {
		record(t.Context(), func(rt T) { sum.count(runOne(rt, memHarness{cannot: Garbage}, cfg, c)) })
	}
	if sum.skipped != 1 || sum.ran != len(checks())-1 {
		t.Errorf("a harness without one deed: %+v, want one skip", sum)
	}
}

func TestTableKnowsEveryCapabilityOnce(t *testing.T) {
	t.Parallel()
	var named []Capability
	for _, r := range table() {
		if slices.Contains(named, r.of) {
			t.Errorf("%q has two rows", r.of)
		}
		named = append(named, r.of)
		for i, n := range r.needs {
			if n != Required && n != Possible && n != Absent {
				t.Errorf("%q of %s needs %q", r.of, networks()[i], n)
			}
		}
	}
	for _, c := range checks() {
		if !slices.Contains(named, c.of) {
			t.Errorf("the check %q is of a capability without a row", c.name)
		}
	}
	for _, capability := range named {
		if !slices.ContainsFunc(checks(), func(c check) bool { return c.of == capability }) {
			t.Errorf("%q has no check", capability)
		}
	}
	if Needs("carrier pigeon") != nil {
		t.Error("an unknown network has a column")
	}
}

func TestChecksHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range checks() {
		if seen[c.name] {
			t.Errorf("two checks are named %q", c.name)
		}
		seen[c.name] = true
	}
}

// recorder is a T that remembers instead of failing the test.
type recorder struct {
	ctx    context.Context
	mu     sync.Mutex
	failed bool
	log    []string
}

// record runs f to its end or to its Fatalf.
func record(ctx context.Context, f func(T)) *recorder {
	rec := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				rec.Errorf("panic: %v", v)
			}
		}()
		f(rec)
	}()
	<-done
	return rec
}

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
