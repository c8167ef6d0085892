//go:build !nowhatsapp

package gateway_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"

	"parley/channels/whatsapp/whatsapptest"
)

// waWorld is people who write to a daemon over a fake WhatsApp. What they see is judged.
type waWorld struct {
	t    *testing.T
	net  *whatsapptest.Server
	dir  string
	prog program
	log  *logBuffer
	d    *daemon

	mu    sync.Mutex
	asked map[string]string // markers with who wrote them
	count map[string]int    // by person
}

const waPeople = 6

func newWAWorld(t *testing.T) *waWorld {
	t.Helper()
	whatsapptest.Quiet()
	w := &waWorld{t: t, dir: t.TempDir(), log: &logBuffer{}, asked: map[string]string{}, count: map[string]int{}}
	w.net = whatsapptest.Start(t, whatsapptest.Options{})
	for i := range waPeople {
		w.net.AddPerson(whatsapptest.Person{Phone: waPhone(i), LID: fmt.Sprintf("19000000000%04d", i), Name: fmt.Sprintf("P%d", i), ByPhone: i%2 == 0})
	}
	w.link()
	root := whatsapptest.Root()
	conf := fmt.Sprintf(`
data_dir: %s
gateway: {listen: "127.0.0.1:0", token: "%s"}
models: [{name: m, api: offline}]
agents: [{id: assistant, name: Assistant, default: true, model: m}]
channels: [{name: wa, type: whatsapp, api_url: "%s", root_key: "%s", access: {dm: open}}]
sandbox: {backend: none}
`, w.data(), apiToken, w.net.URL(), hex.EncodeToString(root[:]))
	if err := os.WriteFile(w.config(), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.d != nil {
			w.d.kill()
		}
		if t.Failed() {
			t.Log(tail(w.log.String(), 10_000))
			t.Logf("complaints: %q", w.net.Complaints())
		}
	})
	return w
}

func waPhone(i int) string { return fmt.Sprintf("49176%08d", 1000+i) }

func (w *waWorld) data() string   { return filepath.Join(w.dir, "data") }
func (w *waWorld) config() string { return filepath.Join(w.dir, "parley.yaml") }

// link makes a linked device in the data directory, as a login does.
func (w *waWorld) link() {
	w.t.Helper()
	if err := os.Mkdir(w.data(), 0o700); err != nil {
		w.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.data(), "wa-wa.db")+"?_pragma=foreign_keys(1)&_txlock=immediate")
	if err != nil {
		w.t.Fatal(err)
	}
	box := sqlstore.NewWithDB(db, "sqlite", nil)
	if err := box.Upgrade(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.net.Link(w.t.Context(), box.NewDevice(), 100); err != nil {
		w.t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *waWorld) boot(env ...string) { w.d = w.prog.start(w.t, w.log, func() {}, env...) }

// says has a person write a message with a new marker.
func (w *waWorld) says(person int, rest string) {
	w.mu.Lock()
	phone := waPhone(person)
	w.count[phone]++
	mark := fmt.Sprintf("m%dx%dx", person, w.count[phone])
	w.asked[mark] = phone
	w.mu.Unlock()
	w.net.Write(whatsapptest.In{From: phone, Text: mark + rest})
}

var waMark = regexp.MustCompile(`m\d+x\d+x`)

// answers counts how often each marker stands in what people got.
func (w *waWorld) answers() map[string]int {
	got := map[string]int{}
	for i := range waPeople {
		for _, m := range w.net.Chat(waPhone(i), types.NewJID(waPhone(i), types.DefaultUserServer)) {
			if !m.Own || m.Deleted {
				continue
			}
			for _, mark := range waMark.FindAllString(m.Text, -1) {
				got[mark]++
			}
		}
	}
	return got
}

// until waits for something on the network.
func (w *waWorld) until(what string, limit time.Duration, cond func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	if err := w.net.Wait(ctx, cond); err != nil {
		w.t.Fatalf("waited %v for %s; %d of %d answered", limit, what, len(w.answers()), len(w.asked))
	}
}

// judge wants every message answered, once.
func (w *waWorld) judge() {
	w.t.Helper()
	w.until("the last answers", 90*time.Second, func() bool { return len(w.answers()) == len(w.asked) })
	w.net.KeepReceipts()
	w.net.Cut() // what the lost receipts were for is offered again, and only to a new connection
	w.until("the last receipts", 90*time.Second, func() bool { return len(w.net.Waiting()) == 0 })
	twice := 0
	for mark, n := range w.answers() {
		if n != 1 {
			twice++
			w.t.Errorf("%s stands in %d answers", mark, n)
		}
	}
	w.t.Logf("%d messages of %d people: 0 lost, %d twice", len(w.asked), waPeople, twice)
	for _, c := range w.net.Complaints() {
		w.t.Errorf("the network complains: %s", c)
	}
}
