package storetest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// cable is a way to a PostgreSQL that can be cut, also at the worst moment: behind a COMMIT that was done and before
// its answer.
type cable struct {
	dir           string // holds the socket that clients are pointed to
	network, addr string // of the server

	lost atomic.Bool // cut at the next COMMIT's answer

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	wg       sync.WaitGroup
}

func newCable(t testing.TB, config *pgx.ConnConfig) *cable {
	t.Helper()
	dir, err := os.MkdirTemp("", "pg") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{dir: dir, network: "tcp", addr: fmt.Sprintf("%s:%d", config.Host, config.Port), conns: map[net.Conn]bool{}}
	if strings.HasPrefix(config.Host, "/") {
		c.network, c.addr = "unix", filepath.Join(config.Host, fmt.Sprintf(".s.PGSQL.%d", config.Port))
	}
	c.Mend()
	t.Cleanup(func() {
		c.Cut()
		c.wg.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Cut ends all connections and lets none in.
func (c *cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil {
		_ = c.listener.Close() // its Accept ends
		c.listener = nil
	}
	for conn := range c.conns {
		_ = conn.Close() // both pumps end
	}
	clear(c.conns)
}

// Mend lets connections in again.
func (c *cable) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, err := net.Listen("unix", filepath.Join(c.dir, ".s.PGSQL.5432"))
	if err != nil {
		panic(err) // a temporary folder of Parley's
	}
	c.listener = l
	c.wg.Go(func() { c.accept(l) })
}

// LoseNextCommit cuts the connection when the server has answered the next COMMIT, and keeps the answer.
func (c *cable) LoseNextCommit() { c.lost.Store(true) }

func (c *cable) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(c.network, c.addr)
		if err != nil {
			_ = client.Close() // the client sees no server
			continue
		}
		c.mu.Lock()
		if c.listener != l { // cut meanwhile
			c.mu.Unlock()
			_, _ = client.Close(), server.Close()
			continue
		}
		c.conns[client], c.conns[server] = true, true
		c.mu.Unlock()
		c.wg.Go(func() { c.pump(server, client, false) })
		c.wg.Go(func() { c.pump(client, server, true) })
	}
}

// pump copies until either end closes, and then closes both.
func (c *cable) pump(to, from net.Conn, answers bool) {
	defer func() {
		_, _ = to.Close(), from.Close() // the other pump may have done so
		c.mu.Lock()
		delete(c.conns, to)
		delete(c.conns, from)
		c.mu.Unlock()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if answers && bytes.Contains(buf[:n], []byte("COMMIT\x00")) && c.lost.CompareAndSwap(true, false) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
