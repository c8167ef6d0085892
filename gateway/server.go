package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"parley/configs"
)

// server is the one HTTP listener.
type server struct {
	listener net.Listener
	http     *http.Server
}

func (s *server) addr() string {
	if s == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// listen opens the port and serves until Stop.
func (g *Gateway) listen(c *configs.Config) error {
	handler, err := g.handler(c)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(g.base, "tcp", c.Gateway.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Gateway.Listen, err)
	}
	s := &server{listener: l, http: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return g.base }}}
	g.server = s
	done := make(chan struct{})
	go func() { // ends with Shutdown or Close below, which wait for done
		defer close(done)
		var err error
		if c.Gateway.TLS.Cert != "" {
			err = s.http.ServeTLS(l, c.Gateway.TLS.Cert, c.Gateway.TLS.Key)
		} else {
			err = s.http.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			select {
			case g.failed <- fmt.Errorf("serve HTTP: %w", err):
			default:
			}
		}
	}()
	g.stops.push("http", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		err := s.http.Shutdown(ctx)
		if err != nil { // streams that stay open are cut: their readers resume by number
			err = s.http.Close()
		}
		<-done
		return err
	})
	return nil
}

// handler is what the listener serves.
func (g *Gateway) handler(*configs.Config) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"ok"}`) })
	return mux, nil
}
