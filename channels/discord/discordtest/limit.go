package discordtest

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// limit is how many requests a bucket takes in so many seconds. Discord publishes no figures and tells them in headers;
// these are what bots see (https://discord.com/developers/docs/topics/rate-limits).
type limit struct {
	n   int
	per float64
}

const (
	globalRequests = 50 // in a second
	htmlLimited    = "<!doctype html>\n<html lang=\"en-US\"><head><title>Access denied | discord.com used Cloudflare to restrict access</title></head><body><h1>Error 1015</h1><p>You are being rate limited</p></body></html>\n"
)

type bucket struct {
	left int
	ends time.Time
}

// pace counts a request and writes the headers of its bucket. The caller holds s.mu.
func (s *Server) pace(w http.ResponseWriter, rt *route, args map[string]string) *apiError {
	now := s.opts.Now()
	if !rt.open && !s.charge("global", limit{globalRequests, 1}, now) {
		return s.limited(w, s.buckets["global"].ends.Sub(now), true)
	}
	if rt.limit.n == 0 {
		return nil
	}
	key := rt.name + " " + args["channel"] + args["guild"] + args["token"] // the major parameters
	ok := s.charge(key, rt.limit, now)
	b := s.buckets[key]
	h := w.Header()
	h.Set("X-RateLimit-Limit", strconv.Itoa(rt.limit.n))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, b.left)))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(b.ends.UnixMilli())/1000))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", b.ends.Sub(now).Seconds()))
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", len(rt.name))+"d4b5c0d7e")
	if !ok {
		return s.limited(w, b.ends.Sub(now), false)
	}
	return nil
}

func (s *Server) charge(key string, l limit, now time.Time) bool {
	b := s.buckets[key]
	if b == nil || !now.Before(b.ends) {
		b = &bucket{left: l.n, ends: now.Add(time.Duration(l.per * float64(time.Second)))}
		s.buckets[key] = b
	}
	b.left--
	return b.left >= 0
}

// limited is a 429 with what it carries.
func (s *Server) limited(w http.ResponseWriter, after time.Duration, global bool) *apiError {
	h := w.Header()
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	h.Set("X-Fake-Retry-After", fmt.Sprintf("%.3f", after.Seconds()))
	h.Set("X-RateLimit-Scope", "user")
	if global {
		h.Set("X-RateLimit-Global", "true")
		h.Set("X-RateLimit-Scope", "global")
	}
	return refuse(http.StatusTooManyRequests, 0, "You are being rate limited.")
}
