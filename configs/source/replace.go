package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"parley/configs"
)

// ErrChanged says that the file is another than the one that a change was made of.
var ErrChanged = errors.New("the file has changed meanwhile")

// ErrUnwritable says that the file could not be written; its cause goes with it.
var ErrUnwritable = errors.New("the configuration file cannot be written")

// File is the text of a configuration as it is kept.
type File struct {
	Path     string // absolute; where it would be, when there is none
	Text     []byte
	Revision string // of the text; empty: there is no file
}

// RevisionOf tells a text from another.
func RevisionOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// File reads the file that is meant.
func (s *Source) File() (File, error) {
	var f File
	path, err := configs.Place(s.meant())
	if err != nil {
		return f, err
	}
	f.Path = path
	switch f.Text, err = os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return f, fmt.Errorf("read configuration: %w", err)
	}
	f.Revision = RevisionOf(f.Text)
	return f, nil
}

// SecretKeys are the names of the keys that hold credentials, here and in the options of adapters.
func (s *Source) SecretKeys() []string { return configs.SecretKeys(s.opts.Sections) }

// Check is what a text means that is not the file yet; its error is a *configs.Error, or wraps ErrEmpty. Beside an error
// stands what was understood of it.
func (s *Source) Check(text []byte) (*configs.Config, error) {
	o := s.meant()
	path, err := configs.Place(o)
	if err != nil {
		return nil, err
	}
	o.Path = path
	c, err := configs.Understand(text, o)
	if err == nil && c.Empty() {
		err = fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	return c, err
}

// replacement is a text that Watch is asked to put in force.
type replacement struct {
	base string
	text []byte // nil: no file
	done chan error
}

// Replace writes another text and puts it in force, as a whole or not at all: what does not load, or what Watch's prepare
// refuses, leaves the file as it was. base is the revision of the text that it was made of; where the file is another by now, it
// is ErrChanged. A nil text takes the file away. Watch must run.
func (s *Source) Replace(ctx context.Context, base string, text []byte) error {
	r := replacement{base, text, make(chan error, 1)}
	select {
	case s.replace <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-r.done // it is short: what has begun is finished
}

// replaceNow is Replace on Watch's own goroutine. take puts in force what the options lead to.
func (s *Source) replaceNow(r replacement, take func(configs.LoadOptions) error) error {
	before, err := s.File()
	if err != nil {
		return err
	}
	if before.Revision != r.base {
		return fmt.Errorf("%s: %w", before.Path, ErrChanged)
	}
	if r.text != nil {
		if _, err := s.Check(r.text); err != nil {
			return err
		}
	}
	if bytes.Equal(before.Text, r.text) && (before.Revision != "") == (r.text != nil) {
		return nil
	}
	o := s.meant()
	if err = put(before.Path, r.text); err == nil {
		err = take(s.leads(o, r.text))
	}
	if err == nil {
		return nil
	}
	if now, second := s.File(); second != nil || now.Revision != "" && !bytes.Equal(now.Text, r.text) {
		return errors.Join(err, second) // somebody else has written: it is theirs
	}
	was := before.Text
	if before.Revision == "" {
		was = nil
	}
	if second := put(before.Path, was); second != nil {
		return errors.Join(err, second)
	}
	return errors.Join(err, take(o))
}

// leads is where a text is looked for once it is written, or not there any more.
func (s *Source) leads(o configs.LoadOptions, text []byte) configs.LoadOptions {
	if text == nil {
		o.Path = s.opts.Path
	}
	return o
}

func put(path string, text []byte) error {
	var err error
	if text == nil {
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = WriteWhole(path, text)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	return nil
}
