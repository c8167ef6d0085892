package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// FollowLogs hands over the lines of the daemon's log after line after, each as it comes, until the gateway stops, which
// is not an error, or each returns one; ErrEnough ends it well. 0 begins with the newest lines.
func (c *Client) FollowLogs(ctx context.Context, level string, after int64, each func(LogItem) error) error {
	q := url.Values{}
	if level != "" {
		q.Set("level", level)
	}
	if after > 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	res, err := c.request(ctx, http.MethodGet, "/v1/logs/events?"+q.Encode(), http.Header{"Accept": {"text/event-stream"}}, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	frames := NewFrames(res.Body)
	for {
		f, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.Event != "line" {
			continue
		}
		var l LogItem
		if err := json.Unmarshal([]byte(f.Data), &l); err != nil {
			return fmt.Errorf("read line %s of the log: %w", f.ID, err)
		}
		if err := each(l); errors.Is(err, ErrEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
