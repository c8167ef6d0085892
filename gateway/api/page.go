package api

import (
	"fmt"
	"net/http"
	"strings"

	"parley/gateway/api/limit"
	"parley/gateway/api/signin"
	"parley/gateway/api/wire"
)

// pageOr serves the page, which is open, where a browser asks for it, and says that there is nothing elsewhere.
func pageOr(page http.Handler, m *middleware, mux *http.ServeMux) http.Handler {
	nothing := m.endpoint(route{traits: bare, serve: func(w http.ResponseWriter, r *http.Request) error { return missing(mux, w, r) }})
	if page == nil {
		return nothing
	}
	shown := m.endpoint(route{traits: open | bare, serve: func(w http.ResponseWriter, r *http.Request) error {
		page.ServeHTTP(w, r)
		return nil
	}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forPage(r) {
			shown.ServeHTTP(w, r)
			return
		}
		nothing.ServeHTTP(w, r)
	})
}

// forPage says whether a request is for the page, its files, or one of its own addresses such as /sessions/….
func forPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "v1", "healthz", "readyz", "metrics", "mcp", "hooks", "debug", "openapi.json":
		return false
	case "channels": // below it are networks' own calls
		if r.URL.Path != "/channels" {
			return false
		}
	case "", "assets", "favicon.ico", "favicon.svg", "manifest.webmanifest", "robots.txt":
		return true
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// missing tells a path that is nothing here from a method that is wrong there.
func missing(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return wire.Fault(http.StatusMethodNotAllowed, "method", fmt.Sprintf("Use %s.", strings.Join(allowed, " or ")))
	}
	return wire.NoEndpoint()
}

// networks hands a network's own calls to its channel, which checks their signature: no token is asked for here.
type networks struct {
	named  func(name string) http.Handler
	guard  *signin.Guard
	limits *limit.Limits
}

func (n networks) serve(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if n.named != nil {
		if h := n.named(name); h != nil {
			leave, err := n.limits.Bodies.Reserve(r, false, wire.MaxBody)
			if err != nil { // somebody sends slowly: who comes last may be a network
				n.limits.Conns.ShedServed()
				if leave, err = n.limits.Bodies.Reserve(r, false, wire.MaxBody); err != nil {
					return err
				}
			}
			defer leave()
			http.StripPrefix("/channels/"+name, h).ServeHTTP(w, r)
			return nil
		}
	}
	if err := n.guard.Authenticate(r); err != nil { // strangers do not learn which channels there are
		return err
	}
	return wire.NoEndpoint()
}
