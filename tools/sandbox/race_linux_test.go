//go:build race

package sandbox

// raceMemory is what the race detector itself may take meanwhile, in bytes.
const (
	raceMemory = 64 << 20
)
