package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
	"parley/workspace/storetest"
)

// watched opens a store on dir and returns what it tells of its health.
func watched(t *testing.T, dir string) (*store.Store, chan store.Health) {
	t.Helper()
	told := make(chan store.Health, 64)
	s, err := store.Open(t.Context(), store.Options{Dir: dir, Now: time.Now, BallastBytes: 4 << 20, OnHealth: func(h store.Health) { told <- h }})
	if err != nil {
		t.Fatal(err)
	}
	return s, told
}

// fill takes all room that is left.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, block := range []int{1 << 20, 4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, block))
		}
	}
}

func TestR09_AFullDiskRefusesAndHeals(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "40m")
	s, told := watched(t, filepath.Join(disk, "data"))
	flying, err := s.Accept(storetest.NewChat(0).Begun(s, "m:flying", "in flight"))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(disk, "filler"))
	var acked []workspace.InputID
	for i := 0; err == nil; i++ { // the log may have room for a few
		var got []store.Accepted
		if got, err = s.Accept(storetest.NewChat(1).Message(s, fmt.Sprintf("m:%d", i), strings.Repeat("x", 1000))); err == nil {
			acked = append(acked, got[0].Input.ID)
		}
		if i == 100_000 {
			t.Fatal("the disk is never full")
		}
	}
	if !errors.Is(err, channels.ErrUnwritable) {
		t.Fatalf("accept on a full disk: %v", err)
	}
	if h := <-told; h != store.Unwritable {
		t.Errorf("told %s", h)
	}
	f, err := s.Finish(storetest.Answer(flying[0].Begun.Run, strings.Repeat("answer ", 1000), flying[0].Input))
	if err != nil || f.Answer == nil {
		t.Fatalf("what was in flight: %+v %v", f, err)
	}
	if _, err := s.Accept(storetest.NewChat(2).Message(s, "late", "x")); !errors.Is(err, channels.ErrUnwritable) {
		t.Errorf("accept on the ballast: %v", err)
	}
	if h, why := s.Health(); h != store.Unwritable || why == "" {
		t.Errorf("health %s %q", h, why)
	}
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	if h := <-told; h != store.Well { // by itself
		t.Errorf("told %s", h)
	}
	if info, err := os.Stat(filepath.Join(disk, "data", "ballast")); err != nil || info.Size() != 4<<20 {
		t.Errorf("ballast: %v %v", info, err)
	}
	if _, err := s.Accept(storetest.NewChat(2).Message(s, "late", "x")); err != nil {
		t.Errorf("accept after healing: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := watched(t, filepath.Join(disk, "data"))
	for _, id := range acked {
		if _, err := again.Input(id); err != nil {
			t.Errorf("acknowledged and lost: %v", err)
		}
	}
	if err := errors.Join(again.Verify(t.Context()), again.Close()); err != nil {
		t.Error(err)
	}
}

func TestR09_AStartOnAFullDiskUsesTheBallast(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, "40m")
	s, _ := watched(t, filepath.Join(disk, "data"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(disk, "filler"))
	s, told := watched(t, filepath.Join(disk, "data"))
	if h, _ := s.Health(); h == store.Well {
		// nothing had to be freed: the log's first pages fitted; the first message will tell
		_, err := s.Accept(storetest.NewChat(1).Message(s, "m:1", strings.Repeat("x", 1<<20)))
		if !errors.Is(err, channels.ErrUnwritable) {
			t.Errorf("accept on a full disk: %v", err)
		}
	}
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	for h := range told {
		if h == store.Well {
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A lock that somebody else holds is as bad as a full disk, and passes like one.
func TestR09_ALockedDatabaseRefusesAndHeals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, told := watched(t, dir)
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "parley.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept(storetest.NewChat(1).Message(s, "m:1", "x")); !errors.Is(err, channels.ErrUnwritable) {
		t.Errorf("accept beside a foreign lock: %v", err)
	}
	if h := <-told; h != store.Unwritable {
		t.Errorf("told %s", h)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if h := <-told; h != store.Well {
		t.Errorf("told %s", h)
	}
	if err := errors.Join(conn.Close(), other.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestAnUncleanEndIsCheckedAfterTheStart(t *testing.T) {
	t.Parallel()
	p := storetest.SQLite(t)
	s := p.Open(t)
	if _, err := s.Accept(storetest.NewChat(1).Message(s, "m:1", "x")); err != nil {
		t.Fatal(err)
	}
	p.Crash(t, s)
	told := make(chan store.Health, 8)
	again := p.Open(t, func(o *store.Options) { o.OnHealth = func(h store.Health) { told <- h } })
	if first, second := <-told, <-told; first != store.Degraded || second != store.Well {
		t.Errorf("told %s, then %s", first, second)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	clean := p.Open(t, func(o *store.Options) { o.OnHealth = func(h store.Health) { t.Errorf("after a clean end: %s", h) } })
	if h, why := clean.Health(); h != store.Well {
		t.Errorf("after a clean end: %s %s", h, why)
	}
}

func TestR12_ADamagedDatabaseIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	p := storetest.SQLite(t)
	s := p.Open(t)
	c := storetest.NewChat(1)
	secret := "a text that will be damaged"
	a, err := s.Accept(c.Begun(s, "m:1", secret))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(p.Dir(), "parley.db")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte(secret))
	text[at] ^= 2
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan store.Health, 8)
	bad := p.Open(t, func(o *store.Options) { o.OnHealth = func(h store.Health) { told <- h } })
	if _, err := bad.Input(a[0].Input.ID); !errors.Is(err, store.ErrDamaged) {
		t.Fatalf("a flipped bit in a text: %v", err)
	}
	if h := <-told; h != store.Damaged {
		t.Errorf("told %s", h)
	}
	if _, err := bad.Accept(c.Message(bad, "m:2", "x")); !errors.Is(err, channels.ErrUnwritable) {
		t.Errorf("accept into a damaged store: %v", err)
	}
	if err := bad.SetSetting("a", "b"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("write into a damaged store: %v", err)
	}
	if err := bad.Verify(t.Context()); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("verify: %v", err)
	}
}

func TestTheDailyCheckFindsDamage(t *testing.T) {
	t.Parallel()
	p := storetest.SQLite(t)
	s := p.Open(t)
	for i := range 300 {
		if _, err := s.Accept(storetest.NewChat(1).Message(s, fmt.Sprintf("m:%d", i), "text")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.SetSetting("checked", fmt.Sprint(time.Now().Add(-25*time.Hour).UnixMilli())), s.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(p.Dir(), "parley.db")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(text, []byte("text{"))
	text[at] ^= 1
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan store.Health, 8)
	p.Open(t, func(o *store.Options) { o.OnHealth = func(h store.Health) { told <- h } })
	if h := <-told; h != store.Damaged {
		t.Errorf("told %s", h)
	}
}

func TestTheLogStaysBoundedBesideReaders(t *testing.T) {
	t.Parallel()
	p := storetest.SQLite(t)
	s := p.Open(t, func(o *store.Options) { o.Synchronous = "NORMAL" })
	db := p.DB(t)
	defer db.Close()
	ctx, stop := context.WithCancel(t.Context())
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		for ctx.Err() == nil {
			rows, err := db.QueryContext(ctx, `SELECT text FROM inputs ORDER BY seq DESC LIMIT 5`)
			if err != nil {
				return
			}
			for rows.Next() {
				var text string
				_ = rows.Scan(&text) // only that it is read
			}
			_ = rows.Close() // a reader that comes again at once
		}
	}()
	most, text := int64(0), strings.Repeat("a long message ", 20_000) // 300 kB
	for i := range 600 {
		if _, err := s.Accept(storetest.NewChat(1).Message(s, fmt.Sprintf("m:%d", i), text)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(p.Dir(), "parley.db-wal")); err == nil {
			most = max(most, info.Size())
		}
	}
	stop()
	<-reading
	t.Logf("the log's largest size under 180 MB of messages: %d MB", most>>20)
	if most > 128<<20 {
		t.Errorf("the log grew to %d MB", most>>20)
	}
}
