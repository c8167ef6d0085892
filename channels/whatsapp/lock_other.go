//go:build !unix

package whatsapp

import (
	"fmt"
	"os"
)

// lock holds a file open; the lock of the data directory stands before it.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	return f, nil
}

func unlock(f *os.File) error { return f.Close() }
