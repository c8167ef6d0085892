package channeltest

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"

	"parley/channels"
)

// Outgoing is a file to send that has these bytes. Its reference has nothing of its name.
func Outgoing(name, mime string, data []byte) channels.File {
	return channels.File{Name: name, MIME: mime, Size: int64(len(data)), Ref: fmt.Sprintf("%x", crc32.ChecksumIEEE(data)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// Unopened is a file of so many bytes that cannot be opened.
func Unopened(name string, size int64, err error) channels.File {
	return channels.File{Name: name, Size: size, Open: func(context.Context) (io.ReadCloser, error) { return nil, err }}
}

// Contents reads a file to send.
func Contents(ctx context.Context, f channels.File) ([]byte, error) {
	r, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// counted is the file, with how often it is open kept in left.
func counted(f channels.File, left *atomic.Int64) channels.File {
	open := f.Open
	f.Open = func(ctx context.Context) (io.ReadCloser, error) {
		r, err := open(ctx)
		if err != nil {
			return nil, err
		}
		left.Add(1)
		return &leaving{r, left}, nil
	}
	return f
}

type leaving struct {
	io.ReadCloser
	left *atomic.Int64
}

func (l *leaving) Close() error {
	l.left.Add(-1)
	return l.ReadCloser.Close()
}
