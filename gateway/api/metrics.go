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
	if s.opt.Metrics != nil {
		s.opt.Metrics(w)
	}
	return nil
}

// Metric writes one sample without labels. What cannot be written has no reader.
func Metric[N int | int64 | float64](w io.Writer, name, kind, help string, value N) {
	_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, value)
}
