package snapshot

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"parley/configs"
	"parley/tools"
	"parley/tools/builtin"
	"parley/tools/sandbox"
	"parley/tools/sandbox/egress"
	"parley/workspace/disk"
)

// SandboxOptions of a Sandbox.
type SandboxOptions struct {
	Backend sandbox.Backend // in place of what the configuration names; nil: that
	Disk    *disk.Rule
	Log     *slog.Logger
	Refused func(egress.Refusal) // is told of hosts that a command may not reach
}

// Sandbox is where commands run, with the tool that runs them. It is made once: a change of it waits for a restart.
type Sandbox struct {
	sandbox.Backend
	Network bool // commands reach hosts
	Exec    tools.Tool

	log   *slog.Logger
	tried chan struct{} // closed after the first look
}

// NewSandbox makes what a configuration names; it does no IO. Nothing of the gateway's is visible in it.
func NewSandbox(c *configs.Config, o SandboxOptions) *Sandbox {
	s := &Sandbox{Backend: o.Backend, Network: c.Sandbox.Network == "egress", log: o.Log, tried: make(chan struct{})}
	limits := sandbox.Limits{Timeout: c.Sandbox.Timeout, Memory: int64(c.Sandbox.Memory), Processes: c.Sandbox.Processes}
	if s.Backend == nil {
		cfg := sandbox.Config{Backend: c.Sandbox.Backend, Limits: limits, Concurrent: c.Concurrency.Exec,
			Scratch: filepath.Join(c.DataDir, "probe"), Disk: o.Disk, Hide: []string{c.DataDir}}
		if c.Path != "" {
			cfg.Hide = append(cfg.Hide, c.Path)
		}
		s.Backend = sandbox.New(cfg, sandbox.Deps{Log: o.Log, Egress: proxy(c, o)})
	}
	s.Exec = builtin.Exec(builtin.ExecOptions{Sandbox: s.Backend, Limits: limits, Egress: s.Network, Profile: profile(c),
		Resolve: builtin.FindProgram, Stamp: builtin.StampProgram, Tried: s.tried})
	return s
}

// proxy is what commands have in place of a network; nil: they have none.
func proxy(c *configs.Config, o SandboxOptions) sandbox.Server {
	if c.Sandbox.Network != "egress" {
		return nil
	}
	p, err := egress.New(c.Sandbox.Egress, o.Log, nil)
	if err != nil {
		o.Log.Error("command network disabled", "err", err) // the rules of the configuration have passed what this refuses
		return nil
	}
	p.Refused = o.Refused
	return p
}

// Try tries the sandbox once: until it has held, every command waits.
func (s *Sandbox) Try(ctx context.Context) {
	defer close(s.tried)
	report := s.Probe(ctx)
	if report.Tier == sandbox.TierNone {
		s.log.Warn("command execution disabled", "why", report.String())
		return
	}
	s.log.Info("sandbox self-test passed", "tier", string(report.Tier), "report", report.String())
}

// profile names the sandbox with all that the operator has set for it: an approval is bound to it.
func profile(c *configs.Config) string {
	s := fmt.Sprintf("%s, network %s", c.Sandbox.Backend, c.Sandbox.Network)
	if c.Sandbox.Network == "egress" {
		s += " (" + strings.Join(c.Sandbox.Egress, " ") + ")"
	}
	return fmt.Sprintf("%s, %s, %d MiB, %d processes", s, c.Sandbox.Timeout, int64(c.Sandbox.Memory)>>20, c.Sandbox.Processes)
}
