package transport

import (
	"errors"
	"reflect"
	"slices"

	"parley/channels"
	"parley/configs"
)

// A reload adds and removes channels, and gives a channel whose own keys changed (its token was rotated, say, in the
// configuration or in a file that it names) a new adapter: the connection at hand ends, and the next one is the new
// adapter's. What is to be sent meanwhile waits, what the network has comes when it is connected again; the other channels
// notice nothing.

// errRemoved: the channel is not configured any more.
var errRemoved = errors.New("the channel was removed from the configuration")

// Change is what a configuration makes of the channels, ready to be put in force.
type Change struct {
	list  []*Channel                   // all that are configured
	kept  map[*Channel]configs.Channel // those of them that run already, with what they are to be
	renew map[*Channel]renewal
}

// renewal is an adapter that is to take a channel over, with what it was made of.
type renewal struct {
	adapter channels.Channel
	options any
}

// Prepare makes the adapters of channels that are new, or whose own keys changed. Nothing changes before Apply.
func (cs *Channels) Prepare(list []configs.Channel) (Change, error) {
	ch := Change{kept: map[*Channel]configs.Channel{}, renew: map[*Channel]renewal{}}
	var errs []error
	for _, conf := range list {
		c := cs.Named(conf.Name)
		kept := c != nil && string(c.Network) == conf.Type
		if kept {
			ch.list, ch.kept[c] = append(ch.list, c), conf
			if !c.renews(conf) {
				continue
			}
		}
		adapter, err := cs.opt.Build(conf)
		switch {
		case err != nil:
			errs = append(errs, err)
		case adapter == nil: // the network is not built in
		case kept:
			ch.renew[c] = renewal{adapter, conf.Options}
		default:
			ch.list = append(ch.list, New(conf, newPlug(adapter), cs.opt.Log, cs.opt.Now))
		}
	}
	return ch, errors.Join(errs...)
}

// renews says that the channel's own keys changed. An account that is linked in the data directory has no such keys that a
// person would rotate: its change waits for a restart.
func (c *Channel) renews(conf configs.Channel) bool {
	if reflect.DeepEqual(c.options, conf.Options) {
		return false
	}
	_, linked := channels.As[channels.Linker](c.Adapter)
	if linked {
		c.Log.Warn("changed keys of the channel wait for a restart")
	}
	return !linked
}

// Apply puts a change in force: what is sent or asked for from here on finds the new list. Run does the rest.
func (cs *Channels) Apply(ch Change) {
	old, list := cs.All(), slices.Clone(ch.list)
	for _, c := range cs.fixed {
		if c.Adapter != nil {
			list = append(list, c)
		}
	}
	cs.list.Store(&list)
	for _, c := range old {
		if !slices.Contains(list, c) {
			c.Log.Info("channel removed")
			close(c.removed)
		}
	}
	for c, conf := range ch.kept {
		c.configure(conf)
	}
	for c, r := range ch.renew {
		cs.renew(c, r)
	}
	select {
	case cs.changed <- struct{}{}:
	default: // Run will look at the list anyway
	}
}
