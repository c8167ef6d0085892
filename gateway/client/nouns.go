package client

import (
	"context"
	"encoding/json"
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

// Route is a rule, in the order in which they are asked; the last is the default agent, which is no assignment.
type Route struct {
	Precedence int             `json:"precedence"`
	N          int             `json:"n"`
	Rule       string          `json:"rule"`
	Match      json.RawMessage `json:"match"`
	Agent      string          `json:"agent"`
	Session    string          `json:"session"`
	Fanout     []string        `json:"fanout"`
	Fallback   bool            `json:"fallback"`
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

// Config is the configuration in force, without secrets.
type Config struct {
	ConfigFile
	YAML   string          `json:"yaml"`
	Values json.RawMessage `json:"values"`
}

// ConfigFile is how the configuration in force and its file stand to one another.
type ConfigFile struct {
	Path      string     `json:"path"`
	Since     time.Time  `json:"since"`
	Problem   string     `json:"problem"` // why what the file holds now is not in force
	ProblemAt *time.Time `json:"problem_at"`
	Waits     []string   `json:"waits"` // keys whose change waits for a restart
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

// Routes lists the rules in the order in which they are asked.
func (c *Client) Routes(ctx context.Context) (List[Route], error) {
	return get[List[Route]](ctx, c, "/v1/routes")
}

// Config is what the gateway runs with.
func (c *Client) Config(ctx context.Context) (Config, error) {
	return get[Config](ctx, c, "/v1/config")
}

// Logs lists lines of the daemon's log; q: level, limit, after.
func (c *Client) Logs(ctx context.Context, q Query) (List[LogItem], error) {
	return get[List[LogItem]](ctx, c, q.path("/v1/logs"))
}
