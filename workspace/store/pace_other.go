//go:build !linux

package store

// standBack does nothing here.
func standBack() {}
