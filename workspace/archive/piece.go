//go:build unix

package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// piece is a part of a file that holds data.
type piece struct{ at, size int64 }

// pieceHead is how many bytes stand before a piece: where it begins, and how long it is.
const pieceHead = 16

var errPieces = errors.New("it has too many holes")

// piecesOf finds what a file with holes holds; nil: it has none, or they cannot be known.
func piecesOf(f *os.File, st *unix.Stat_t) ([]piece, error) {
	if st.Blocks*512 >= st.Size {
		return nil, nil
	}
	list := []piece{}
	for at := int64(0); at < st.Size; {
		from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole up to the end
			return list, nil
		}
		if err != nil {
			return nil, nil
		}
		to, err := unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE)
		if err != nil {
			return nil, nil
		}
		if from = min(from, st.Size); from < min(to, st.Size) {
			list = append(list, piece{from, min(to, st.Size) - from})
		}
		if len(list) > piecesMost {
			return nil, errPieces
		}
		at = to
	}
	return list, nil
}

// pieceReader reads the pieces of a file, framed each by its head. It always gives as many bytes as were announced.
type pieceReader struct {
	ctx    context.Context //nolint:containedctx // of one call
	file   *os.File
	pieces []piece
	framed bool
	head   []byte // of the piece at hand, what is still to be given
	begun  bool
	short  error // why zeros were given
}

func (r *pieceReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	for len(r.pieces) > 0 {
		p := &r.pieces[0]
		if r.framed && !r.begun {
			r.head = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(p.at)), uint64(p.size))
		}
		r.begun = true
		if len(r.head) > 0 {
			n := copy(b, r.head)
			r.head = r.head[n:]
			return n, nil
		}
		if p.size == 0 {
			r.pieces, r.begun = r.pieces[1:], false
			continue
		}
		b = b[:min(int64(len(b)), p.size)]
		n, err := 0, r.short
		if err == nil {
			n, err = r.file.ReadAt(b, p.at)
		}
		if n == 0 {
			if r.short = err; errors.Is(err, io.EOF) {
				r.short = errShrank
			}
			clear(b)
			n = len(b)
		}
		p.at, p.size = p.at+int64(n), p.size-int64(n)
		return n, nil
	}
	return 0, io.EOF
}

var errShrank = errors.New("it became shorter while it was read")
