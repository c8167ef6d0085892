//go:build !race

package crashtest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
)

// smallDisk mounts a file system of the given size over the daemon's data directory. That needs root: without, the
// test is skipped aloud, or fails where CI=true.
func (w *world) smallDisk(megabytes int) {
	w.t.Helper()
	if err := os.MkdirAll(w.dataDir(), 0o700); err != nil {
		w.t.Fatal(err)
	}
	size := "size=" + strconv.Itoa(megabytes) + "m"
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", size, "parley-test", w.dataDir()).CombinedOutput()
	if err != nil && os.Getenv("CI") == "true" {
		w.t.Fatalf("mount: %v: %s; CI must not skip the full disk", err, out)
	}
	if err != nil {
		w.t.Skipf("SKIPPED: a small disk needs root and mount(8), so a full one is not tried on the whole daemon: %v: %s", err, out)
	}
	w.t.Cleanup(func() {
		if w.d != nil {
			w.d.kill()
		}
		if out, err := exec.Command("umount", w.dataDir()).CombinedOutput(); err != nil {
			w.t.Errorf("umount: %v: %s", err, out)
		}
	})
}

func (w *world) filler() string { return filepath.Join(w.dataDir(), "somebody-else") }

// fill takes all that is left of the disk, and no more: what the daemon gives up for its work in flight is not taken too.
func (w *world) fill() {
	w.t.Helper()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(w.dataDir(), &disk); err != nil {
		w.t.Fatal(err)
	}
	f, err := os.OpenFile(w.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for left := int64(disk.Bavail) * disk.Bsize; err == nil && left > 0; {
		var n int
		n, err = f.Write(block[:min(int64(len(block)), left)])
		left -= int64(n)
	}
	if err != nil && !errors.Is(err, syscall.ENOSPC) {
		w.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) empty() {
	w.t.Helper()
	if err := os.Remove(w.filler()); err != nil {
		w.t.Fatal(err)
	}
}

// unanswered are messages whose acknowledgement was on the wire, and which have no answer yet.
func (w *world) unanswered() (list []string) {
	acked := w.wire.acked.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.sent {
		for update, k := range w.sent[c].updates {
			if update <= acked && !w.seen[k] && slices.Contains(w.sent[c].asked, k) {
				list = append(list, k)
			}
		}
	}
	return list
}

// readiness is what GET /readyz says.
func (w *world) readiness() (int, string) {
	r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.url()+"/readyz", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+apiToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// fullDisk fills the disk under a daemon at work, twice: once it heals by itself, once it is killed while the disk is full.
func fullDisk(t *testing.T, r row) {
	w := newWorld(t, telegramtest.Options{})
	w.smallDisk(48)
	w.prog = realProgram(t, w.config())
	w.people()
	w.boot("", 0)
	w.progress(2 * messagesPerKill)
	for _, again := range []bool{false, true} {
		alarms, healed := w.log.Count("store cannot write"), w.log.Count("store can write again")
		w.fill()
		w.until("an alarm", func() bool { return w.log.Count("store cannot write") > alarms })
		w.until("the health to say so", func() bool { code, _ := w.readiness(); return code == http.StatusServiceUnavailable })
		w.until("an answer to every message that was acknowledged", func() bool { return len(w.unanswered()) == 0 })
		acked := w.wire.acked.Load()
		w.until("everybody to wait", func() bool { return w.wire.tg.View().Pending() >= chatsAtOnce })
		if now := w.wire.acked.Load(); now != acked {
			t.Errorf("%d updates were acknowledged while nothing could be written", now-acked)
		}
		code, body := w.readiness()
		t.Logf("full: %d acknowledged, %d wait at the network; /readyz: %d %s", acked, w.wire.tg.View().Pending(), code, body)
		if again {
			w.d.kill()
			w.died("a full disk")
			w.empty()
			w.boot("", 0)
		} else {
			began := time.Now()
			w.empty()
			w.until("the store to heal", func() bool { return w.log.Count("store can write again") > healed })
			t.Logf("healed %v after there was room", time.Since(began).Round(time.Millisecond))
		}
		w.progress(2 * messagesPerKill)
	}
	w.settle()
	w.judged(r)
}
