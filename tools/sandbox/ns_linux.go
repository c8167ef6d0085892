package sandbox

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"parley/workspace/disk"
)

// niceness is how far a command stands back: the gateway's own threads go before it.
const niceness = 15

// ns is the backend on Linux.
type ns struct {
	cfg    Config
	log    *slog.Logger
	way    Server // out; nil: none
	slots  chan struct{}
	root   bool     // the gateway is root: sandboxes get a user of their own
	hide   []string // clean absolute paths
	maps   mapper
	disk   *disk.Rule
	calls  atomic.Uint64
	weak   switches // tests alone
	spares spares

	filters [2]func() ([]byte, error) // made once: without a cgroup, with one
	find    sync.Once
	groups  *cgroups // nil: none
	whyNot  error    // no cgroup

	mu   sync.Mutex
	last Report
}

// New gives the backend that cfg asks for. It does no IO that could fail the start: what the machine lacks is said by Probe.
func New(cfg Config, deps Deps) Backend {
	if cfg.Backend == "none" {
		return absent{"sandbox.backend is none"}
	}
	if !armed.Load() {
		return absent{"this program cannot be its own sandbox: it has not called sandbox.Init"}
	}
	return newNS(cfg, deps)
}

func newNS(cfg Config, deps Deps) *ns {
	if cfg.Concurrent <= 0 {
		cfg.Concurrent = 2 * runtime.NumCPU()
	}
	n := &ns{cfg: cfg, log: deps.Log, way: deps.Egress, slots: make(chan struct{}, cfg.Concurrent), root: privileged(), last: Report{Tier: TierNone}}
	if n.spares.keep = cfg.Keep; cfg.Keep == 0 {
		n.spares.keep = keepSpare
	}
	for i := range n.filters {
		n.filters[i] = sync.OnceValues(func() ([]byte, error) { return program(i == 1) })
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.disk = cfg.Disk; n.disk == nil {
		n.disk = disk.New(disk.Options{Log: n.log})
	}
	for _, h := range cfg.Hide {
		if abs, err := filepath.Abs(h); err == nil {
			n.hide = append(n.hide, abs)
			if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
				n.hide = append(n.hide, real)
			}
		}
	}
	return n
}

// look finds the machine's cgroups, once: with version 2 the gateway may move into a group of its own for it.
func (n *ns) look() {
	n.find.Do(func() {
		n.groups, n.whyNot = findCgroups("/")
		if n.groups == nil && os.Geteuid() == 0 && n.whyNot == nil {
			n.whyNot = fmt.Errorf("no cgroup")
		}
	})
}

// filter is the filter of system calls. With a cgroup it is the kernel that counts memory.
func (n *ns) filter(bounded bool) ([]byte, error) {
	if bounded {
		return n.filters[1]()
	}
	return n.filters[0]()
}

func (n *ns) Tier() Tier { return n.Last().Tier }

func (n *ns) Last() Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}
