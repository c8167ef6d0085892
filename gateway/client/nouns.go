package client

import "time"

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
	Provider string     `json:"provider"`
	Message  string     `json:"message"`
	Cause    string     `json:"cause"`
	Sentence string     `json:"sentence"`
	Failures int        `json:"failures"`
	Time     time.Time  `json:"time"`
	NextTry  *time.Time `json:"next_try"`
	Stated   bool       `json:"stated"`
}
