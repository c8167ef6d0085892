package slack

import "sync"

// appRegistry knows the channels that share an app: Slack gives an event to any one of the app's sockets, and to its one request
// URL, whichever workspace it is from.
type appRegistry struct {
	mu  sync.Mutex
	all []*Channel
}

func (h *appRegistry) add(c *Channel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, c)
}

// whose finds the running channel of an installation among those that share an app with c. sure says that there is none:
// every other one knows its workspace already.
func (h *appRegistry) whose(c *Channel, at installation) (found *receiver, sure bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sure = true
	for _, o := range h.all {
		if o != c && !sameApp(o, c) {
			continue
		}
		self, r := o.self.Load(), o.live.Load()
		switch {
		case self == nil:
			sure = false
		case self.has(at) && r != nil:
			return r, true
		case self.has(at):
			sure = false // it stands still for the moment
		}
	}
	return nil, sure
}

func sameApp(a, b *Channel) bool {
	return a.opts.AppToken != "" && a.opts.AppToken == b.opts.AppToken || a.opts.SigningSecret != "" && a.opts.SigningSecret == b.opts.SigningSecret
}
