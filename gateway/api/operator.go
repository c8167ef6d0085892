package api

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/gateway/logbook"
	"parley/gateway/spec"
)

// document is this API as OpenAPI 3.1. A test makes it from the table of endpoints and holds real answers against it.
//
//go:embed openapi.json
var document []byte

func (s *server) openapi(w http.ResponseWriter, r *http.Request) error {
	if err := s.opt.Control.Describe(r.Context(), s.call(r)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(document) // a client that left needs no answer
	return nil
}

// logItem is a line of the daemon's own log.
type logItem struct {
	N       int64             `json:"n"` // from 1 since the start
	Time    time.Time         `json:"time"`
	Level   string            `json:"level"` // DEBUG, INFO, WARN, ERROR
	Message string            `json:"message"`
	Attrs   map[string]string `json:"attrs"`
}

func logItemOf(l logbook.Line) logItem {
	v := logItem{N: l.N, Time: l.Time.UTC(), Level: l.Level.String(), Message: l.Message, Attrs: map[string]string{}}
	for _, a := range l.Attrs {
		v.Attrs[a.Key] = a.Value
	}
	return v
}

// logQuery reads ?level= and ?after=.
func logQuery(r *http.Request, limit int) (logbook.Query, error) {
	q := logbook.Query{Limit: limit, Least: slog.LevelDebug}
	if text := r.URL.Query().Get("level"); text != "" {
		if err := q.Least.UnmarshalText([]byte(text)); err != nil || strings.ContainsAny(text, "+-") {
			return q, fault(http.StatusBadRequest, "invalid", "level is debug, info, warn or error.")
		}
	}
	var err error
	q.After, err = number(r, "after")
	return q, err
}

// logs lists the newest lines, or those after one.
func (s *server) logs(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	q, err := logQuery(r, p.limit)
	if err != nil {
		return err
	}
	book, err := s.opt.Control.Log(r.Context(), s.call(r))
	if err != nil {
		return err
	}
	l := spec.List[logItem]{Items: []logItem{}}
	found, upto := book.Read(q)
	for _, one := range found {
		l.Items = append(l.Items, logItemOf(one))
	}
	if q.After > 0 && len(found) == p.limit {
		next := strconv.FormatInt(upto, 10)
		l.Next = &next
	}
	reply(w, http.StatusOK, l)
	return nil
}

// logsAtOnce is how many lines a stream sends before it looks whether its reader is still there.
const logsAtOnce = 200

// logEvents streams the log: first the newest lines, or those after ?after= or Last-Event-ID, then each as it comes.
func (s *server) logEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := logQuery(r, logsAtOnce)
	if err != nil {
		return err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		if q.After, err = strconv.ParseInt(id, 10, 64); err != nil || q.After < 0 {
			return fault(http.StatusBadRequest, "invalid", "Last-Event-ID is a number.")
		}
	}
	book, err := s.opt.Control.Log(r.Context(), s.call(r))
	if err != nil {
		return err
	}
	leave, err := s.hold(s.call(r).Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.counts.streams.Add(1)
	defer s.counts.streams.Add(-1)
	if err := s.followLog(w, r, book, q); err != nil && r.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "route", r.Pattern, "err", err)
	}
	return nil
}

func (s *server) followLog(w http.ResponseWriter, r *http.Request, book *logbook.Book, q logbook.Query) error {
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
		if err := rc.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		for _, l := range found {
			body, err := json.Marshal(logItemOf(l))
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
		case <-s.closing:
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
