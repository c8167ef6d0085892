package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	keepEvery = 2 * time.Second // at most so often is the file written while events come
	maxKept   = 16 << 10        // bytes of the file
)

// kept is what of a session outlives the process, so that the next one can RESUME it: Discord then gives again what came
// meanwhile, first of all the direct messages of people who never wrote before, which no call of REST lists.
//
// Seq never runs ahead of the journal: it is that of an event which is journalled, with all before it. That it lags behind
// does no harm, since the journal knows by their keys the events that come again.
type kept struct {
	Owner   string `json:"owner"` // for whom Discord opened it
	Session string `json:"session_id"`
	URL     string `json:"resume_gateway_url,omitempty"`
	Seq     int64  `json:"seq"`
	Intents int    `json:"intents"` // a session keeps those with which it began
}

// pass moves the mark behind events that are journalled.
func (k *kept) pass(events []payload, intents int) {
	for _, p := range events {
		if p.Type == "READY" {
			*k = kept{Intents: intents}
			if hello, err := decode[ready](p.Data); err == nil {
				k.Session, k.URL = hello.Session, hello.Resume
			}
		}
		if p.Seq != nil {
			k.Seq = *p.Seq
		}
	}
}

// keeper writes the session down beside the gateway's data, mode 0600: who has it and the token is the bot. It owns one
// goroutine, run, so that a slow disk holds up no event.
type keeper struct {
	path, owner string
	log         *slog.Logger

	mu    sync.Mutex
	next  kept
	dirty bool
	woken chan struct{}

	failed bool // the last write did; of which was told
}

// newKeeper is nil where there is no place to keep anything.
func newKeeper(dir, channel, owner string, log *slog.Logger) *keeper {
	if dir == "" {
		return nil
	}
	return &keeper{path: filepath.Join(dir, "dc-"+url.PathEscape(channel)+".session"), owner: owner, log: log, woken: make(chan struct{}, 1)}
}

// ownerOf names the account at an API without telling its token.
func (c *Channel) ownerOf(self *identity) string {
	sum := sha256.Sum256([]byte(c.rest.base.String() + "\n" + self.id + "\n" + c.rest.token.Reveal()))
	return hex.EncodeToString(sum[:16])
}

// load is the session that an earlier process left; false: none that this bot can resume with these intents.
func (k *keeper) load(intents int) (kept, bool) {
	if k == nil {
		return kept{}, false
	}
	got, err := readKept(k.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return kept{}, false
	case err != nil:
		k.log.Warn("stored session cannot be read, a new one begins", "err", err)
		return kept{}, false
	case got.Owner != k.owner || got.Intents != intents || got.Session == "" || got.Seq < 1:
		return kept{}, false // another account's, or one that would hear something else
	}
	return got, true
}

func readKept(path string) (got kept, err error) {
	f, err := os.Open(path)
	if err != nil {
		return kept{}, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxKept))
	if err != nil {
		return kept{}, err
	}
	if json.Unmarshal(raw, &got) != nil {
		return kept{}, errors.New("it is damaged") // what stands in it is a secret
	}
	return got, nil
}

// put says up to where the journal has the session. It does no IO.
func (k *keeper) put(now kept) {
	if k == nil {
		return
	}
	now.Owner = k.owner
	k.mu.Lock()
	defer k.mu.Unlock()
	if now == k.next {
		return
	}
	k.next, k.dirty = now, true
	select {
	case k.woken <- struct{}{}:
	default: // it has a wake-up waiting
	}
}

// run writes what was put until ctx ends, and the last of it then.
func (k *keeper) run(ctx context.Context, every time.Duration) {
	if k == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.woken:
		}
		k.flush()
		t := time.NewTimer(every)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// flush writes what was put and not written yet.
func (k *keeper) flush() {
	if k == nil {
		return
	}
	k.mu.Lock()
	next, dirty := k.next, k.dirty
	k.dirty = false
	k.mu.Unlock()
	if !dirty {
		return
	}
	err := writeKept(k.path, next)
	if err != nil && !k.failed {
		k.log.Warn("session cannot be stored", "err", err)
	}
	k.failed = err != nil
}

// writeKept replaces the file as a whole: after a crash there is the old one or the new one.
func writeKept(path string, k kept) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode the session: %w", err)
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if shut := f.Close(); err == nil {
		err = shut
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use
		return fmt.Errorf("write the session: %w", err)
	}
	return nil
}
