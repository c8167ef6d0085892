package channels_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"parley/channels"
)

// body counts what is read of it, and notes that it was closed.
type body struct {
	io.Reader
	read   int64
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	return n, err
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func TestCappedGivesTheWholeOrSaysThatItIsTooLarge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "file")
		most := rapid.Int64Range(0, 300).Draw(t, "most")
		from := io.Reader(bytes.NewReader(file))
		from = rapid.SampledFrom([]io.Reader{from, iotest.OneByteReader(from), iotest.HalfReader(from), iotest.DataErrReader(from)}).Draw(t, "reader")
		b := &body{Reader: from}
		r := channels.Capped(b, most)

		got, err := io.ReadAll(r)
		if want := file[:min(int64(len(file)), most)]; !bytes.Equal(got, want) {
			t.Fatalf("%d bytes came through, want the first %d", len(got), len(want))
		}
		if tooLarge := int64(len(file)) > most; tooLarge != errors.Is(err, channels.ErrTooLarge) || !tooLarge && err != nil {
			t.Fatalf("%d bytes under a cap of %d: %v", len(file), most, err)
		}
		if _, again := r.Read(make([]byte, 10)); int64(len(file)) > most+1 && !errors.Is(again, channels.ErrTooLarge) {
			t.Fatalf("read again after the end: %v", again)
		}
		if b.read > most+2 {
			t.Fatalf("%d bytes were read under a cap of %d", b.read, most)
		}
		if err := r.Close(); err != nil || !b.closed {
			t.Fatalf("closed: %v, %v", b.closed, err)
		}
	})
}

func TestCappedPassesOnWhatBreaks(t *testing.T) {
	t.Parallel()
	broken := errors.New("the line broke")
	r := channels.Capped(io.NopCloser(io.MultiReader(bytes.NewReader([]byte("four")), iotest.ErrReader(broken))), 4)
	if got, err := io.ReadAll(r); string(got) != "four" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
}
