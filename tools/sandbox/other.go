//go:build !linux

package sandbox

// New gives a backend that runs nothing: without the Linux kernel's namespaces there is no sandbox here.
func New(cfg Config, _ Deps) Backend {
	if cfg.Backend == "none" {
		return absent{"sandbox.backend is none"}
	}
	return absent{"commands run only on Linux: this system has no sandbox that Parley can use"}
}

// Init does nothing here.
func Init() {}
