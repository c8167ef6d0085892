package llmtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// The suite that every model adapter passes: each promise of llm.Model is one row of promises, checked over HTTP against the scripted
// server. What only one wire format can do wrong is tested in its adapter's package. The adapter's TestMain proves with goleak that
// the suite left no goroutine.

// Options are those that every adapter has, so that its own can be made of them by conversion.
type Options struct {
	Name          string
	Provider      string
	Model         string
	BaseURL       string
	APIKey        string
	ContextWindow int
	MaxOutput     int
	HTTP          *http.Client
	Blobs         func(ref string) ([]byte, error)
	Sight         llm.Sight
	Price         func(workspace.Usage) (usd float64, ok bool)
	FirstByte     time.Duration
	Idle          time.Duration
}

// Maker is one adapter.
type Maker struct {
	New      func(Options) (llm.Model, error)
	Wire     Wire
	Failures []Failure // answers that fail and that only this wire format has
}

// Failure is an answer that fails, and how.
type Failure struct {
	Name  string
	Reply Reply
	Kind  llm.Kind // empty: any
	After time.Duration
	Says  string // what people are told, a regular expression; empty: anything
}

var promises = map[string]func(*rig){
	"a stream is shown in pieces and counted":       streamsAndCounts,
	"a whole answer is as good as a stream":         takesWholeAnswers,
	"an unpriced call has no cost":                  leavesUnpriced,
	"calls are assembled from fragments":            assemblesCalls,
	"malformed arguments come back as text":         returnsBadArguments,
	"call ids are unique in the conversation":       keepsCallIDsUnique,
	"a cut stream leaves no half call":              dropsHalfACall,
	"the length limit drops the unfinished call":    dropsUnfinishedCall,
	"empty answers are answers":                     takesEmptyAnswers,
	"a refusal is filtered text, and calls nothing": showsRefusals,
	"every reason to stop is known":                 knowsStopReasons,
	"a silent server times out":                     timesOut,
	"a slow stream is not silent":                   waitsForSlowStreams,
	"nothing is awaited after the end":              endsAtTheEnd,
	"cancelling returns the cause":                  returnsTheCause,
	"the connection is kept between calls":          keepsTheConnection,
	"the key goes into its header":                  sendsTheKey,
	"New names what is wrong":                       namesWhatIsWrong,
	"the account tells models apart":                tellsAccountsApart,
	"failures are classified and explained":         classifiesFailures,
	"a refusal is classified by its status":         classifiesStatuses,
	"an overflow is known in every server's words":  knowsOverflows,
	"an unreachable server is named by its cause":   namesUnreachable,
	"E52 a key is never in an error":                keepsTheKey,
	"redirects are not followed":                    followsNoRedirect,
	"pictures are shown and told":                   showsPictures,
	"what a server does not see is told":            tellsWhatIsNotSeen,
	"sight is taken from the configuration":         takesSightFromOptions,
	"T26 an answer is cut near its limit":           cutsLongAnswers,
	"R20 a short answer never waits for its memory": waitsOnlyWhenLong,
}

// Suite runs every promise against the adapter.
func Suite(t *testing.T, m Maker) {
	t.Helper()
	for name, check := range promises {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(&rig{T: t, Maker: m})
		})
	}
}

const (
	suiteKey = "sk-canary-0123456789"
	patience = 200 * time.Millisecond // with servers that are silent
)

// rig is one check of one adapter.
type rig struct {
	*testing.T
	Maker
}

// open makes a model of a server; change may be nil.
func (r *rig) open(url string, change func(*Options)) llm.Model {
	r.Helper()
	o := Options{Name: "m", Model: "test-model", BaseURL: url, APIKey: suiteKey, HTTP: Client(r.T)}
	if change != nil {
		change(&o)
	}
	m, err := r.New(o)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// serve starts a server that wants the key, and a model of it.
func (r *rig) serve(s Script, change func(*Options)) (*Server, llm.Model) {
	r.Helper()
	srv := Start(r, s)
	srv.Key = suiteKey
	return srv, r.open(srv.URL, change)
}

// failed checks the error of a call: its kind, what people are told of it, and that it tells neither the key nor more of an address
// than its host.
func (r *rig) failed(err error, f Failure) {
	r.Helper()
	var e *llm.Error
	if !errors.As(err, &e) || f.Kind != "" && e.Kind != f.Kind || e.After != f.After {
		r.Errorf("%s: %v, want %s and to wait %s", f.Name, err, f.Kind, f.After)
		return
	}
	told := llm.Problem(llm.TroubleOf(err))
	if f.Says != "" && !regexp.MustCompile("^(?:"+f.Says+")$").MatchString(told) {
		r.Errorf("%s: %q is told, want %q (%v)", f.Name, told, f.Says, err)
	}
	if strings.Contains(told, "/v1") || strings.Contains(told, "canary") {
		r.Errorf("%s: too much is told: %q", f.Name, told)
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if strings.Contains(inner.Error(), "canary") || strings.ContainsAny(inner.Error(), "\x1b\n\x00\u202e") {
			r.Errorf("%s: %q", f.Name, inner)
		}
	}
	if n := len([]rune(err.Error())); n > 400 {
		r.Errorf("%s: %d characters", f.Name, n)
	}
}

// countDials counts the connections that o's client makes.
func countDials(o *Options, dials chan<- struct{}) {
	var d net.Dialer
	o.HTTP.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials <- struct{}{}
		return d.DialContext(ctx, network, addr)
	}
}
