package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/store"
	"parley/workspace/storetest"
)

// TestR18_R19_DamagesAreRefusedHealedSaidOrHarmless damages data directories of acknowledged messages at random, their
// database, its log, the count of commits, the audit log's head and kept files, and starts a store on each. Each start must
// be refused, or the damage said within the check that follows a start, or every row must read back as it was.
// 60 damages, or as many as PARLEY_DAMAGES says.
func TestR18_R19_DamagesAreRefusedHealedSaidOrHarmless(t *testing.T) {
	t.Parallel()
	most, err := strconv.Atoi(os.Getenv("PARLEY_DAMAGES"))
	if err != nil {
		most = 60
	}
	seed, err := strconv.ParseUint(os.Getenv("PARLEY_SEED"), 10, 64)
	if err != nil {
		seed = 18
	}
	kept := keptDirs(t)
	table := map[string]map[string]int{}
	counts := map[string]int{}
	for i := range most {
		d := &damageTry{t: t, dice: rand.New(rand.NewPCG(seed, uint64(i))), kept: kept, dir: filepath.Join(t.TempDir(), "data")}
		outcome := d.run()
		if table[d.what] == nil {
			table[d.what] = map[string]int{}
		}
		table[d.what][outcome]++
		counts[outcome]++
		if strings.HasPrefix(outcome, "LOST") {
			t.Errorf("damage %d: %s: %s", i, strings.Join(d.did, ", then "), outcome)
		}
		if err := os.RemoveAll(d.dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(table)) {
		t.Logf("%-12s %v", what, table[what])
	}
	t.Logf("%d damages: %v", most, counts)
}

// keptDir is a data directory as an ended process left it, with what reads back from it.
type keptDir struct {
	name, dir, older string // older: the same directory earlier on
	want             []string
}

// keptDirs are one of a clean end and one of a killed process.
func keptDirs(t *testing.T) (list []keptDir) {
	p := storetest.SQLite(t)
	fillPart := func(from, to int) *store.Store {
		s := p.Open(t)
		for n := from; n < to; n++ {
			fillOne(t, s, n)
		}
		addRows(t, s, 3)
		files := blob.New(filepath.Join(p.Dir(), "blobs"))
		for i := range 4 {
			ref, err := files.Put([]byte(strings.Repeat(fmt.Sprint("file ", from+i), 1+3000*i)))
			if err == nil {
				err = s.AddUpload(workspace.Upload{Ref: ref, Person: "p1", Kind: "file", Name: "f", Size: 1, Created: time.Now()}, time.Now(), 1<<30)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	keep := func() string {
		to := filepath.Join(t.TempDir(), "kept")
		if err := os.CopyFS(to, os.DirFS(p.Dir())); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(to, "parley.db-shm")) // made again by whoever opens it first
		return to
	}
	begun := p.Open(t)
	var people []workspace.Person
	var accounts []workspace.Account
	for i := range 60 {
		id := workspace.PersonID(fmt.Sprint("person-", i))
		people = append(people, workspace.Person{ID: id, Role: []workspace.Role{workspace.Owner, workspace.Member, workspace.Guest}[i%3]})
		accounts = append(accounts, workspace.Account{Network: "telegram", Account: "42", User: channels.UserID(fmt.Sprint(i)), Person: id})
	}
	if err := errors.Join(begun.SyncPeople(people), begun.SyncAccounts("telegram", "42", accounts), begun.Close()); err != nil {
		t.Fatal(err)
	}
	if err := fillPart(0, 80).Close(); err != nil {
		t.Fatal(err)
	}
	first := keep()
	s := fillPart(80, 120)
	middle := keep()
	for n := 120; n < 150; n++ {
		fillOne(t, s, n)
	}
	addRows(t, s, 1)
	killed := keep()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clean := keep()
	for _, k := range []keptDir{{name: "clean", dir: clean, older: first}, {name: "killed", dir: killed, older: middle}} {
		k.want = readBack(t.Context(), t, k.dir)
		list = append(list, k)
	}
	return list
}

func fillOne(t *testing.T, s *store.Store, n int) {
	t.Helper()
	c := storetest.NewChat(n % 12)
	got, err := s.Accept(c.Begun(s, fmt.Sprintf("m:%d", n), strings.Repeat("what is it? ", n%40)))
	if err != nil {
		t.Fatal(err)
	}
	run := got[0].Begun.Run
	if _, err := s.Step(store.StepUnit{Run: run, Steps: []workspace.Step{{RunID: run.ID, N: 1, Kind: workspace.StepModel, State: workspace.StepDone,
		Body: workspace.StepBody{Content: []workspace.Content{{Kind: workspace.Text, Text: strings.Repeat("let me see ", n%20)}}}}}}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Finish(storetest.Answer(run, strings.Repeat("it is so ", 1+n%50), got[0].Input))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.MovePart(store.Move{Part: f.Answer.Parts[0], To: workspace.PartSent, Remote: "99"}); err != nil {
		t.Fatal(err)
	}
}

// readBack is a hash of all that was acknowledged, or the error of reading it, for the journal and for each table that says
// whose it is.
func readBack(ctx context.Context, t *testing.T, dir string) []string {
	copied := filepath.Join(t.TempDir(), "read")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(copied)
	name := filepath.Join(copied, "parley.db")
	list := []string{"the journal " + dump(ctx, name)}
	for _, q := range []string{
		`SELECT id, network, account, peer_kind, peer, thread, session_key, activation FROM rooms ORDER BY id`,
		`SELECT id, key, gen, agent, partition, created, ended, overrides FROM sessions ORDER BY id`,
		`SELECT id, role, joined FROM people ORDER BY id`, // who is configured, every start of a gateway says
		`SELECT network, account, "user", person_id, most FROM accounts ORDER BY 1, 2, 3`,
		`SELECT ref, person_id FROM uploads ORDER BY ref, person_id`,
		`SELECT chain, n, hash, body FROM audit WHERE body NOT LIKE '%"kind":"store.%' ORDER BY chain, n`,
	} {
		list = append(list, q+": "+dumpOf(ctx, name, q))
	}
	sum := sha256.New()
	err := fs.WalkDir(os.DirFS(copied), "blobs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var text []byte
			text, err = os.ReadFile(filepath.Join(copied, name))
			fmt.Fprintf(sum, "%s %d %s", name, len(text), text)
		}
		return err
	})
	return append(list, fmt.Sprintf("kept files %x %v", sum.Sum(nil), err))
}

// damageTry is one damage and what becomes of it.
type damageTry struct {
	t    *testing.T
	dice *rand.Rand
	kept []keptDir
	dir  string
	from keptDir
	what string
	did  []string
}

func (d *damageTry) run() string {
	d.from = d.kept[d.dice.IntN(len(d.kept))]
	if err := os.CopyFS(d.dir, os.DirFS(d.from.dir)); err != nil {
		d.t.Fatal(err)
	}
	d.did = append(d.did, d.from.name)
	d.what = d.damage()
	if d.dice.IntN(12) == 0 {
		d.what = "two files"
		d.damage()
	}
	var outcome string
	synctest.Test(d.t, func(t *testing.T) { outcome = d.start(t) })
	if outcome == "" {
		outcome = "reads back"
		for i, got := range readBack(d.t.Context(), d.t, d.dir) {
			if got != d.from.want[i] {
				outcome = "LOST without a word"
				d.did = append(d.did, got)
			}
		}
	}
	return outcome
}

// damage does something to one file and returns what it is.
func (d *damageTry) damage() string {
	at := d.dice.IntN(100)
	switch {
	case at < 25 && d.from.name == "killed":
		d.hurt("parley.db-wal")
		return "log"
	case at < 65:
		d.hurt("parley.db")
		return "database"
	case at < 77:
		d.hurt("commits")
		return "count"
	case at < 89:
		d.hurt("audit.head")
		return "audit head"
	}
	list, err := fs.Glob(os.DirFS(d.dir), "blobs/??/*")
	if err != nil || len(list) == 0 {
		d.t.Fatal(list, err)
	}
	d.hurt(list[d.dice.IntN(len(list))])
	return "file"
}

func (d *damageTry) hurt(name string) {
	file := filepath.Join(d.dir, name)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || len(text) == 0 {
		return // the first of two damages took it
	}
	if err != nil {
		d.t.Fatal(err)
	}
	page := func() []byte {
		n := d.dice.IntN((len(text) + 4095) / 4096)
		return text[n*4096 : min(len(text), n*4096+4096)]
	}
	how := ""
	switch d.dice.IntN(11) {
	case 0, 1, 2:
		how = "a bit flipped"
		at := d.dice.IntN(len(text))
		text[at] ^= 1 << d.dice.IntN(8)
		how += fmt.Sprint(" at ", at)
	case 3:
		how = "a page full of flipped bits"
		p := page()
		for range 64 {
			p[d.dice.IntN(len(p))] ^= 1 << d.dice.IntN(8)
		}
	case 4:
		how = "pages zeroed"
		for range 1 + d.dice.IntN(3) {
			clear(page())
		}
	case 5:
		how = "cut"
		text = text[:d.dice.IntN(len(text))]
	case 6:
		how, text = "emptied", nil
	case 7:
		d.did = append(d.did, name+" deleted")
		if err := os.Remove(file); err != nil {
			d.t.Fatal(err)
		}
		return
	case 8:
		how = "an older copy"
		if text, err = os.ReadFile(filepath.Join(d.from.older, name)); err != nil {
			how, text = "emptied", nil // it had none then
		}
	case 9:
		how = "another page over a page"
		copy(page(), slices.Clone(page()))
	case 10:
		other := []string{"parley.db", "commits", "audit.head"}[d.dice.IntN(3)]
		how = "the contents of " + other
		if text, err = os.ReadFile(filepath.Join(d.from.dir, other)); err != nil {
			d.t.Fatal(err)
		}
	}
	d.did = append(d.did, name+": "+how)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// start opens a store on the damaged directory and lets its check end. It is empty when nothing was said.
func (d *damageTry) start(t *testing.T) string {
	opt := store.Options{Dir: d.dir, BallastBytes: -1, Now: time.Now}
	s, err := store.Open(context.Background(), opt)
	switch {
	case errors.Is(err, store.ErrLost):
		return "refused: lacks"
	case errors.Is(err, store.ErrDamaged):
		return "refused: damaged"
	case err != nil:
		return "refused: " + err.Error()
	}
	said := d.looked(t, s)
	if err := s.Close(); err != nil {
		t.Errorf("%v: close: %v", d.did, err)
	}
	return said
}

func (d *damageTry) looked(t *testing.T, s *store.Store) string {
	<-time.After(time.Minute) // the clock of the bubble: the check has ended
	synctest.Wait()
	if h, _ := s.Health(); h == store.Damaged {
		d.untouched(t, s)
		return "said: damaged"
	}
	refs, err := s.BlobRefs(t.Context())
	if err != nil {
		t.Errorf("%v: references: %v", d.did, err)
	}
	if bad := blob.New(filepath.Join(d.dir, "blobs")).Verify(refs); len(bad) > 0 {
		return "said: by doctor"
	}
	rows, err := s.AuditAfter(-1, 5)
	if err != nil {
		t.Errorf("%v: audit log: %v", d.did, err)
	}
	for _, r := range rows {
		if strings.Contains(string(r.Body), workspace.AuditStoreUnwitnessed) {
			return "healed and said"
		}
	}
	return ""
}

// untouched wants nothing to be taken or written any more.
func (d *damageTry) untouched(t *testing.T, s *store.Store) {
	was := d.sum(t)
	if _, err := s.Accept(storetest.NewChat(1).Message(s, "m:late", "x")); !errors.Is(err, channels.ErrUnwritable) {
		t.Errorf("%v: accepted: %v", d.did, err)
	}
	if err := s.SetSetting("a", "b"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v: written: %v", d.did, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%v: close: %v", d.did, err)
	}
	if d.sum(t) != was {
		t.Errorf("%v: a damaged database was written to", d.did)
	}
}

func (d *damageTry) sum(t *testing.T) string {
	sum := sha256.New()
	for _, name := range []string{"parley.db", "parley.db-wal"} {
		text, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%d %s", len(text), text)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
