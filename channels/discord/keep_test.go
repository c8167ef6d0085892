package discord

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/discord/discordtest"
)

const stranger = "900000000000000007" // a conversation with ben, who never wrote before

// keeping is a rig whose processes keep their session.
func keeping(t *testing.T, o discordtest.Options) *rig {
	t.Helper()
	dir := t.TempDir() // goes after the process has ended
	r := newRig(t, o)
	r.dir = dir
	r.c.dir, r.c.pace.keep = r.dir, time.Millisecond
	r.fake.AddChannel(discordtest.Channel{ID: stranger, Type: discordtest.Direct, With: ben})
	r.run()
	r.says(ana, dm, "before")
	r.says(ana, general, "in the channel")
	r.hears("before", "in the channel")
	return r
}

// off ends the process and has something said that no call of REST lists, and something that REST gives back.
func (r *rig) off() {
	r.t.Helper()
	r.end()
	r.says(ben, stranger, "my first word")
	r.says(ana, dm, "meanwhile")
}

func (r *rig) file() string { return filepath.Join(r.dir, "dc-dc.session") }

func (r *rig) kept() (k kept) {
	r.t.Helper()
	raw, err := os.ReadFile(r.file())
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

func (r *rig) put(k kept) {
	r.t.Helper()
	if err := writeKept(r.file(), k); err != nil {
		r.t.Fatal(err)
	}
}

// TestR01_TheNextProcessResumes: what came while none ran comes again, the first word of somebody among it, which no other
// way brings; each once, and no session is spent.
func TestR01_TheNextProcessResumes(t *testing.T) {
	t.Parallel()
	r := keeping(t, discordtest.Options{})
	r.off()
	r.says(ben, thread, "in a thread")
	r.says(ana, general, "<@&"+botRole+"> look")
	r.restart()
	r.hears("my first word", "meanwhile", "in a thread", "look")
	r.says(ana, general, "after")
	r.hears("after")
	if got := r.j.texts(); len(got) != 7 {
		t.Errorf("taken %q, want each once", got)
	}
	for text, where := range map[string]string{"my first word": stranger, "in a thread": thread, "look": general, "after": general} {
		want := r.at(where)
		if where == stranger {
			want.Kind = channels.DM
		}
		if in := r.inbound(text); in.To != want || (where != stranger) != (in.Server == server) || text == "look" && !in.Mentioned {
			t.Errorf("%q came as %+v", text, in)
		}
	}
	if l := r.fake.Line(); l.Identifies != 1 || l.Resumed != 1 {
		t.Errorf("identified %d times and resumed %d times, want one each", l.Identifies, l.Resumed)
	}
	info, err := os.Stat(r.file())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the session is kept as %v, %v", info, err)
	}
	if id := r.kept().Session; id == "" || strings.Contains(r.logs.String(), id) {
		t.Errorf("the session %q is in the log:\n%s", id, r.logs)
	}
}

// TestAKeptSessionThatIsOfNoUse: a new one is begun, and REST gives what it can.
func TestAKeptSessionThatIsOfNoUse(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*rig){
		"Discord has let it go":    (*rig).forgotten,
		"closed at each try":       func(r *rig) { r.fake.Gateway(func(f *discordtest.GatewayFault) { f.CloseResume = 4000 }) },
		"ahead of Discord":         func(r *rig) { k := r.kept(); k.Seq += 1000; r.put(k) },
		"damaged":                  func(r *rig) { r.spoil("{\"owner") },
		"empty":                    func(r *rig) { r.spoil("") },
		"of another account":       func(r *rig) { k := r.kept(); k.Owner = strings.Repeat("0", 32); r.put(k) },
		"would hear less than now": func(r *rig) { k := r.kept(); k.Intents &^= 1 << 15; r.put(k) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := keeping(t, discordtest.Options{NoLimits: true})
			r.off()
			spoil(r)
			r.restart()
			r.hears("meanwhile")
			r.says(ana, dm, "after")
			r.hears("after")
			if got := r.j.texts(); len(got) != 4 || slices.Contains(got, "my first word") {
				t.Errorf("taken %q, want what REST gives, once", got)
			}
			if l := r.fake.Line(); l.Identifies != 2 || l.Resumed != 0 {
				t.Errorf("identified %d times and resumed %d times, want the second session", l.Identifies, l.Resumed)
			}
			r.end()
			r.says(ben, stranger, "a later word")
			r.fake.ClearFaults()
			r.restart()
			r.hears("a later word") // the new session is kept in place of the old
		})
	}
}

// forgotten has Discord let all sessions go.
func (r *rig) forgotten() {
	r.t.Helper()
	r.until("the end of the connection", func(l discordtest.Line) bool { return l.Open == 0 })
	r.fake.Expire()
}

func (r *rig) spoil(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file(), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// TestTheKeptSessionIsNeverAheadOfTheJournal: what the journal does not take comes again in the next process.
func TestTheKeptSessionIsNeverAheadOfTheJournal(t *testing.T) {
	t.Parallel()
	r := keeping(t, discordtest.Options{})
	r.j.refuseAll(channels.ErrUnwritable)
	r.says(ben, stranger, "nobody can write this down")
	r.wait("the refusal", func() bool { return r.j.last().State == channels.Deaf })
	r.end()
	r.j.refuseAll(nil)
	r.restart()
	r.hears("nobody can write this down")
	if got := r.j.texts(); len(got) != 3 {
		t.Errorf("taken %q, want each once", got)
	}
}

// TestServersThatComeLate: a room of theirs is none of one person's, and what was missed there is read when they come.
func TestServersThatComeLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, discordtest.Options{NoLimits: true})
	const other = "900000000000000009"
	r.fake.AddChannel(discordtest.Channel{ID: other, Type: discordtest.Text, Guild: server, Name: "other"})
	r.run()
	r.says(ana, dm, "before")
	r.says(ana, general, "in the channel")
	r.hears("before", "in the channel")
	r.end()
	r.says(ben, other, "where the journal knows nothing")
	r.says(ben, general, "missed")
	r.fake.Gateway(func(f *discordtest.GatewayFault) { f.NoGuilds = true })
	r.renew()
	r.c.pace.guilds = 100 * time.Millisecond
	r.run()
	if in := r.inbound("missed"); in.To != r.at(general) || in.Server != server {
		t.Errorf("read back as %+v", in)
	}
	r.says(ana, dm, "live")
	r.hears("live")
	r.fake.SendGuilds()
	if in := r.inbound("where the journal knows nothing"); in.To != r.at(other) || in.Server != server {
		t.Errorf("read back as %+v", in)
	}
}

// TestOddAnswersAreAnswers: a server in Discord's place may leave out what is optional, and write numbers as it likes.
func TestOddAnswersAreAnswers(t *testing.T) {
	t.Parallel()
	answer := map[string]func(http.ResponseWriter){
		"limits without a date": func(w http.ResponseWriter) {
			w.Header()["Date"] = nil
			w.Header().Set("X-RateLimit-Reset", "1470173023.123")
			w.Header().Set("X-RateLimit-Remaining", "4.0")
			_, _ = w.Write([]byte(`{"id":"77","unknown":{"a":[1]}}`))
		},
		"created": func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated); _, _ = w.Write([]byte(`{"id":"77"}`)) },
		"429 with a header only": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1.5")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"429 with a page and a header": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"429 with a whole number": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"message":"slow","retry_after":2,"global":false}`))
		},
		"429 and nothing": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		answer[req.URL.Query().Get("limit")](w)
	}))
	t.Cleanup(s.Close)
	r, err := newREST(must(t, s.URL+"/"), "a.b.c", s.Client())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]channels.Error{
		"limits without a date": {}, "created": {},
		"429 with a header only":       {Class: channels.Retry, After: 1500 * time.Millisecond, Global: true},
		"429 with a page and a header": {Class: channels.Retry, After: 3 * time.Second, Global: true},
		"429 with a whole number":      {Class: channels.Retry, After: 2 * time.Second},
		"429 and nothing":              {Class: channels.Retry, Global: true},
	} {
		var got sent
		err := r.get(t.Context(), "try", "x?limit="+strings.ReplaceAll(name, " ", "+"), &got)
		if want.Class == "" {
			if err != nil || got.ID != "77" {
				t.Errorf("%s: %v, %+v", name, err, got)
			}
			continue
		}
		if e, ok := err.(*channels.Error); !ok || e.Class != want.Class || e.After != want.After || e.Global != want.Global {
			t.Errorf("%s: %+v, want %+v", name, err, want)
		}
	}
}
