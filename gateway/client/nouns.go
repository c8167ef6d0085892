package client

import (
	"context"
	"net/http"
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

func sessionPath(key string) string { return "/v1/sessions/" + url.PathEscape(key) }

// WorkFiles is what fills the work folder of a session.
type WorkFiles struct {
	Session  string     `json:"session"`
	Path     string     `json:"path"`  // the folder that is looked at; "." is all of it
	Bytes    int64      `json:"bytes"` // in the whole work folder
	Files    int64      `json:"files"`
	MaxBytes int64      `json:"max_bytes"`
	MaxFiles int64      `json:"max_files"`
	More     bool       `json:"more,omitempty"` // there is more than was counted
	Items    []WorkFile `json:"items"`          // directly in the folder, the largest first
	Largest  []WorkFile `json:"largest"`        // files anywhere in it
	Mounted  []string   `json:"mounted"`        // owners' folders, which are not counted
	Shared   bool       `json:"shared"`         // other sessions work there too
	DiskFree int64      `json:"disk_free"`
	DiskKept int64      `json:"disk_kept"`
	DiskLow  bool       `json:"disk_low"`
}

// WorkFile is a file or folder in a work folder.
type WorkFile struct {
	Path      string `json:"path"`
	Folder    bool   `json:"folder"`
	Bytes     int64  `json:"bytes"`
	Files     int64  `json:"files"`
	Removable bool   `json:"removable"`
}

// FilesRemoved is what was removed from a work folder, and what is left.
type FilesRemoved struct {
	Path    string    `json:"path"`
	Removed int64     `json:"removed"`
	Audited bool      `json:"audited"`
	Left    WorkFiles `json:"left"`
}

// WorkFiles says what fills the work folder of a session, or with a path one folder in it.
func (c *Client) WorkFiles(ctx context.Context, key, path string) (WorkFiles, error) {
	return get[WorkFiles](ctx, c, Query{"path": path}.path(sessionPath(key)+"/files"))
}

// RemoveFile removes a file from the work folder of a session, or with folder a folder with all that is in it.
func (c *Client) RemoveFile(ctx context.Context, key, path string, folder bool, idempotencyKey string) (r FilesRemoved, err error) {
	q := Query{"path": path}
	if folder {
		q["folder"] = "true"
	}
	return r, c.do(ctx, http.MethodDelete, q.path(sessionPath(key)+"/files"), keyed(idempotencyKey), nil, &r)
}

func keyed(key string) http.Header {
	h := http.Header{}
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	return h
}

// Logs lists lines of the daemon's log; q: level, limit, after.
func (c *Client) Logs(ctx context.Context, q Query) (List[LogItem], error) {
	return get[List[LogItem]](ctx, c, q.path("/v1/logs"))
}
