//go:build !linux

package engine

// standBack does nothing here.
func standBack() {}
