package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/operator"
	"parley/gateway/logbook"
)

// logQuery reads ?level= and ?after=.
func logQuery(r *http.Request, limit int) (logbook.Query, error) {
	q := logbook.Query{Limit: limit, Least: slog.LevelDebug}
	if text := r.URL.Query().Get("level"); text != "" {
		if err := q.Least.UnmarshalText([]byte(text)); err != nil || strings.ContainsAny(text, "+-") {
			return q, wire.Invalid("level is debug, info, warn or error.")
		}
	}
	var err error
	q.After, err = wire.Number(r, "after")
	return q, err
}

// logsAtOnce is how many lines a stream sends before it looks whether its reader is still there.
const logsAtOnce = 200

// LogEvents streams the log: first the newest lines, or those after ?after= or Last-Event-ID, then each as it comes.
func (s *Streams) LogEvents(w http.ResponseWriter, r *http.Request, call control.Call) error {
	q, err := logQuery(r, logsAtOnce)
	if err != nil {
		return err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		if q.After, err = strconv.ParseInt(id, 10, 64); err != nil || q.After < 0 {
			return wire.Invalid("Last-Event-ID is a number.")
		}
	}
	book, err := s.opt.Book(r.Context(), call)
	if err != nil {
		return err
	}
	leave, err := s.opt.Limits.Hold(call.Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	defer s.begin(w)()
	if err := s.followLog(w, r, book, q); err != nil && r.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "route", r.Pattern, "err", err)
	}
	return nil
}

func (s *Streams) followLog(w http.ResponseWriter, r *http.Request, book *logbook.Book, q logbook.Query) error {
	rc := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		grew := book.Grew()
		found, upto := book.Read(q)
		q.After = upto
		if upto == 0 { // nothing was ever logged: all that comes is new
			q.After = -1
		}
		if err := wire.WriteWithin(w, writeWithin); err != nil {
			return err
		}
		for _, l := range found {
			body, err := json.Marshal(operator.LogItemOf(l))
			if err == nil {
				_, err = fmt.Fprintf(w, "id: %d\nevent: line\ndata: %s\n\n", l.N, body)
			}
			if err != nil {
				return err
			}
		}
		if err := rc.Flush(); err != nil {
			return err
		}
		if len(found) == q.Limit {
			continue
		}
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-s.opt.Closing:
			_, err := fmt.Fprint(w, "event: error\ndata: {\"code\":\"closing\",\"message\":\"The gateway is stopping.\"}\n\n")
			return errors.Join(err, rc.Flush())
		case <-grew:
		case <-beat.C:
			if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil {
				return err
			}
		}
	}
}
