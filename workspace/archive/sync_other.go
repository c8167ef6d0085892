//go:build unix && !linux

package archive

import (
	"context"
	"errors"
	"os"

	"parley/workspace/tree"
)

// syncOne makes a file's content durable.
func syncOne(f *os.File) error { return f.Sync() }

// syncAll makes the names of all files durable; their contents are.
func syncAll(ctx context.Context, dir string) error {
	top, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer top.Close()
	sync := func(e *tree.Entry) error {
		d, err := tree.OpenDir(e.At, e.Name, 0)
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	}
	return errors.Join(tree.Walker{Leave: sync}.Walk(ctx, top), top.Sync())
}
