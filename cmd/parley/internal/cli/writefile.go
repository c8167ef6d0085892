// Files that are there whole or not at all.

package cli

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile writes a file whole or not at all, mode 0600.
func WriteFile(name, text string) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".parley-") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(tmp.Name()))
	}
	return err
}
