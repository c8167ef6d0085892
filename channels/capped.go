package channels

import (
	"fmt"
	"io"
)

// Capped gives at most so many bytes of body. A body that has more fails then with ErrTooLarge, and does not merely end: a
// part of a file is not the file. Nothing beyond one byte too many is read. Closing it closes body.
func Capped(body io.ReadCloser, most int64) io.ReadCloser { return &capped{body, most} }

type capped struct {
	body io.ReadCloser
	left int64 // bytes that may still come
}

func (c *capped) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.body.Read(p)
	if int64(n) > c.left {
		n, c.left = int(c.left), 0
		return n, fmt.Errorf("read attachment: %w", ErrTooLarge)
	}
	c.left -= int64(n)
	return n, err
}

func (c *capped) Close() error { return c.body.Close() }
