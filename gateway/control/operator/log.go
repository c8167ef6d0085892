package operator

import (
	"context"
	"strconv"
	"time"

	"parley/gateway/control"
	"parley/gateway/logbook"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
)

// LogItem is a line of the daemon's own log.
type LogItem struct {
	N       int64             `json:"n"` // from 1 since the start
	Time    time.Time         `json:"time"`
	Level   string            `json:"level"` // DEBUG, INFO, WARN, ERROR
	Message string            `json:"message"`
	Attrs   map[string]string `json:"attrs"`
}

// LogItemOf is a line as people read it.
func LogItemOf(l logbook.Line) LogItem {
	v := LogItem{N: l.N, Time: l.Time.UTC(), Level: l.Level.String(), Message: l.Message, Attrs: map[string]string{}}
	for _, a := range l.Attrs {
		v.Attrs[a.Key] = a.Value
	}
	return v
}

// LogIn says which lines are wanted.
type LogIn struct {
	Level string `query:"level" help:"least *loudness*" enum:"debug,info,warn,error" default:"debug"`
	spec.Page
}

// ListLog lists the newest lines of the daemon's own log, or those after one.
var ListLog = control.Verb[*Operator, LogIn, spec.List[LogItem]]{
	Name: "logs", Help: "List the newest lines of the daemon's log", Rights: rights.Owners, HTTP: "GET /v1/logs", Group: "gateway",
	Do: func(_ context.Context, c *Operator, _ control.Call, in LogIn) (spec.List[LogItem], error) {
		l, q := spec.Whole[LogItem](nil), logbook.Query{Limit: in.Limit}
		if err := q.Least.UnmarshalText([]byte(in.Level)); err != nil {
			return l, err
		}
		if in.After != "" {
			var err error
			if q.After, err = strconv.ParseInt(in.After, 10, 64); err != nil || q.After < 0 {
				return l, workspace.Say(workspace.ErrInvalid, "after is a number from 0, not %q.", clip.Runes(in.After, 40))
			}
		}
		found, upto := c.Process.Book.Read(q)
		for _, one := range found {
			l.Items = append(l.Items, LogItemOf(one))
		}
		if q.After > 0 && len(found) == in.Limit {
			l.GoOn(upto)
		}
		return l, nil
	},
}

// Log is the newest part of the daemon's own log, for who follows it.
func (c *Operator) Log(_ context.Context, call control.Call) (*logbook.Book, error) {
	if err := c.Allow(call, "logs"); err != nil {
		return nil, err
	}
	return c.Process.Book, nil
}
