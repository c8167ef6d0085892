package blob

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// File is a kept file that is open for reading. It has no name: where files are kept is the store's business, and who is
// given one may be a network's adapter.
type File struct {
	file *os.File
	size int64
}

var (
	_ io.ReadSeekCloser = (*File)(nil)
	_ io.ReaderAt       = (*File)(nil)
)

// Size is how many bytes it has.
func (f *File) Size() int64 { return f.size }

// Head is its first bytes, as many as Kept has. It does not move where Read goes on.
func (f *File) Head() ([]byte, error) {
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	return n, nameless(err)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.file.ReadAt(p, at)
	return n, nameless(err)
}

// Seek implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	n, err := f.file.Seek(offset, whence)
	return n, nameless(err)
}

// Close implements io.Closer.
func (f *File) Close() error { return nameless(f.file.Close()) }

// nameless is an error without the path that it tells of.
func nameless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
