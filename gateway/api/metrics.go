package api

import (
	"fmt"
	"io"
	"net/http"
)

// metrics writes Prometheus' text format. No label ever holds a person's text.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	Metric(w, "parley_http_requests_total", "counter", "HTTP requests.", s.counts.requests.Load())
	Metric(w, "parley_http_refused_total", "counter", "HTTP requests refused for their host, origin or token.", s.counts.refused.Load())
	Metric(w, "parley_http_streams", "gauge", "Event streams that are open.", s.counts.streams.Load())
	Metric(w, "parley_http_slow_readers_total", "counter", "Event streams that were dropped since their reader was too slow.", s.counts.slow.Load())
	all, strangers, shed := s.conns.count()
	Metric(w, "parley_http_connections", "gauge", "Connections that are open.", all)
	Metric(w, "parley_http_connections_unauthenticated", "gauge", "Of these, those that have carried no request that was let in.", strangers)
	Metric(w, "parley_http_connections_shed_total", "counter", "Connections closed to make room for others.", shed)
	Metric(w, "parley_http_held", "gauge", "Event streams, pages and followed logs that are open.", s.held.count())
	Metric(w, "parley_http_waits", "gauge", "Messages whose senders wait for the answer.", s.waits.count())
	Metric(w, "parley_http_follows", "gauge", "Sessions that pages follow.", s.follows.count())
	if s.opt.Metrics != nil {
		s.opt.Metrics(w)
	}
	return nil
}

// Metric writes one sample without labels. What cannot be written has no reader.
func Metric[N int | int64 | float64](w io.Writer, name, kind, help string, value N) {
	_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, value)
}
