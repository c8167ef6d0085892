package api

import (
	"fmt"
	"io"

	"parley/gateway/api/limit"
	"parley/gateway/api/stream"
)

// writeMetrics writes what the listener counts. No label ever holds a person's text.
func writeMetrics(w io.Writer, c *counts, l *limit.Limits, streams *stream.Streams) {
	open, slow := streams.Counts()
	Metric(w, "parley_http_requests_total", "counter", "HTTP requests.", c.requests.Load())
	Metric(w, "parley_http_refused_total", "counter", "HTTP requests refused for their host, origin or token.", c.refused.Load())
	Metric(w, "parley_http_streams", "gauge", "Event streams that are open.", open)
	Metric(w, "parley_http_slow_readers_total", "counter", "Event streams that were dropped since their reader was too slow.", slow)
	all, strangers, shed := l.Conns.Count()
	Metric(w, "parley_http_connections", "gauge", "Connections that are open.", all)
	Metric(w, "parley_http_connections_unauthenticated", "gauge", "Of these, those that have carried no request that was let in.",
		strangers)
	Metric(w, "parley_http_connections_shed_total", "counter", "Connections closed to make room for others.", shed)
	Metric(w, "parley_http_held", "gauge", "Event streams, pages and followed logs that are open.", l.Held.Count())
	Metric(w, "parley_http_waits", "gauge", "Messages whose senders wait for the answer.", l.Waits.Count())
	Metric(w, "parley_http_follows", "gauge", "Sessions that pages follow.", l.Follows.Count())
}

// Metric writes one sample without labels. What cannot be written has no reader.
func Metric[N int | int64 | float64](w io.Writer, name, kind, help string, value N) {
	_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, value)
}
