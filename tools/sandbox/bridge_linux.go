package sandbox

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
)

// maxConns is how many connections one command may have to the proxy at once.
const maxConns = 64

// bridge serves the loopback port of one sandbox, whose listening socket init has opened inside and handed out: what
// connects there speaks with the egress proxy and with nothing else. It returns when ctx ends, with every connection closed.
func (n *ns) bridge(ctx context.Context, file *os.File) {
	l, err := net.FileListener(file)
	file.Close()
	if err != nil {
		n.log.Warn("the proxy's port of a sandbox could not be served", "err", err)
		return
	}
	var all sync.WaitGroup
	defer all.Wait()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	slots := make(chan struct{}, maxConns)
	for {
		inside, err := l.Accept()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			inside.Close()
			return
		}
		all.Go(func() {
			defer func() { <-slots }()
			n.carry(ctx, inside)
		})
	}
}

// carry moves the bytes of one connection in both directions.
func (n *ns) carry(ctx context.Context, inside net.Conn) {
	defer inside.Close()
	var d net.Dialer
	proxy, err := d.DialContext(ctx, "unix", n.cfg.ProxyAt)
	if err != nil {
		return // the command sees a closed connection; the proxy's owner logs why it is down
	}
	defer proxy.Close()
	stop := context.AfterFunc(ctx, func() { inside.Close(); proxy.Close() })
	defer stop()
	var both sync.WaitGroup
	move := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // a broken connection is an end like another
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the other end may be gone
		}
	}
	both.Go(func() { move(proxy, inside) })
	both.Go(func() { move(inside, proxy) })
	both.Wait()
}
