package client

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// List is a page of a list; Next goes into After of the next one, nil: there is none.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
}

// LogItem is a line of the daemon's own log.
type LogItem struct {
	N       int64             `json:"n"`
	Time    time.Time         `json:"time"`
	Level   string            `json:"level"`
	Message string            `json:"message"`
	Attrs   map[string]string `json:"attrs"`
}

// Trouble is how a model fails a run.
type Trouble struct {
	Model    string     `json:"model"`
	Kind     string     `json:"kind"`
	Status   int        `json:"status"` // of HTTP; 0: there was no answer
	Message  string     `json:"message"`
	Sentence string     `json:"sentence"`
	Failures int        `json:"failures"`
	Time     time.Time  `json:"time"`
	NextTry  *time.Time `json:"next_try"`
	Stated   bool       `json:"stated"`
}

// Query is what narrows a list; what is empty does not. Names are those of the API's parameters.
type Query map[string]string

func (q Query) path(base string) string { return q.Path(base) }

// Path is a list's address with what narrows it.
func (q Query) Path(base string) string {
	v := url.Values{}
	for name, text := range q {
		if text != "" {
			v.Set(name, text)
		}
	}
	if len(v) == 0 {
		return base
	}
	return base + "?" + v.Encode()
}

// Page is a query for so many items after the last one of the page before.
func (q Query) Page(limit int, after string) Query {
	out := Query{"after": after}
	if limit > 0 {
		out["limit"] = strconv.Itoa(limit)
	}
	for name, text := range q {
		out[name] = text
	}
	return out
}

func get[T any](ctx context.Context, c *Client, path string) (v T, err error) {
	return v, c.Get(ctx, path, &v)
}

// Logs lists lines of the daemon's log; q: level, limit, after.
func (c *Client) Logs(ctx context.Context, q Query) (List[LogItem], error) {
	return get[List[LogItem]](ctx, c, q.path("/v1/logs"))
}
