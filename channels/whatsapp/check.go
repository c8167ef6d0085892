package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/channels"
)

// Check looks at the link. While Run is connected it looks at that; else it connects once and leaves, which takes nothing:
// what comes meanwhile stays at the server.
func (c *Channel) Check(ctx context.Context) []channels.Finding {
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	if live != nil && live.owed.doubted() > 0 {
		return []channels.Finding{{OK: true, What: "linked to " + live.me.User}, {What: errUnanswered.Error(), Hint: hintUnanswered}}
	}
	if s, err := c.connected(); err == nil {
		return s.findings(ctx)
	}
	if !c.linking.TryLock() {
		return []channels.Finding{{OK: true, What: "a login is under way"}}
	}
	defer c.linking.Unlock()
	if c.keep.empty() {
		return []channels.Finding{{What: "no WhatsApp account is linked", Hint: c.linkHint()}}
	}
	v, err := c.keep.acquire(ctx)
	if errors.Is(err, errOwned) {
		return []channels.Finding{{OK: true, What: "the gateway has the device", Hint: fmt.Sprintf("It knows more: parley channel test %s", c.name)}}
	}
	if err != nil {
		return []channels.Finding{{What: err.Error(), Hint: "Check the data directory and its rights."}}
	}
	defer c.keep.release()
	dev, err := v.device(ctx)
	if err != nil {
		return []channels.Finding{{What: "the linked device cannot be read: " + err.Error(), Hint: "Check the data directory, or restore it."}}
	}
	if dev == nil {
		return []channels.Finding{{What: "no WhatsApp account is linked", Hint: c.linkHint()}}
	}
	if c.busyRunning() {
		return []channels.Finding{{OK: true, What: "linked to " + dev.ID.User}}
	}
	probe := c.newSession(v, dev, &watch{in: deafIntake{}})
	defer probe.close()
	if err := probe.try(ctx); err != nil {
		return []channels.Finding{finding(c, err)}
	}
	return probe.findings(ctx)
}

func (c *Channel) busyRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live != nil
}

// deafIntake takes nothing: what a look receives is left for Run.
type deafIntake struct{}

func (deafIntake) Receive(context.Context, ...channels.Inbound) error { return channels.ErrBusy }
func (deafIntake) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	return nil, nil
}
func (deafIntake) Report(channels.Status) {}

// try connects until the server has said yes or no.
func (s *session) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return errMute
		case got := <-s.signals:
			switch sig := got.(type) {
			case ready:
				s.mu.Lock()
				s.up = true
				s.mu.Unlock()
				return nil
			case lost:
				if why := s.reason(); why != nil {
					return why
				}
				return errLost
			case error:
				return sig
			}
		}
	}
}

func finding(c *Channel, err error) channels.Finding {
	var gone *goneError
	var no *refusedError
	switch {
	case errors.As(err, &no):
		return channels.Finding{What: no.Error(), Hint: no.hint()}
	case errors.As(err, &gone):
		return channels.Finding{What: gone.cause, Hint: c.linkHint()}
	case errors.Is(err, errOutdated):
		return channels.Finding{What: err.Error(), Hint: "Install a newer Parley; until there is one, client_version: newest may help."}
	case errors.Is(err, errReplaced):
		return channels.Finding{What: err.Error(), Hint: "Stop the other program; is there a copy of this data directory?"}
	}
	return channels.Finding{What: "WhatsApp does not let us in: " + mask(channels.CauseOf(err)), Hint: "Check the network between this machine and web.whatsapp.com, then try again."}
}

// findings are of a connection that stands.
func (s *session) findings(ctx context.Context) []channels.Finding {
	list := []channels.Finding{{OK: true, What: "linked to " + s.me.User}}
	if s.cli.Store.PushName == "" {
		list = append(list, channels.Finding{OK: true, What: "the phone has not told the account's name yet",
			Hint: "People may not see typing until it has: open WhatsApp on the phone."})
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	//lint:ignore SA1019 it is dangerous to write by it; this only counts
	n, err := s.cli.DangerousInternals().GetServerPreKeyCount(ctx)
	switch {
	case err != nil:
		list = append(list, channels.Finding{What: "WhatsApp does not answer: " + mask(channels.CauseOf(err)), Hint: "Check the network, then try again."})
	case n == 0:
		list = append(list, channels.Finding{What: "WhatsApp has no keys of this device, so that nobody new can write to it", Hint: "Restart the gateway: they are sent at the start."})
	}
	return list
}
