package channels_test

import (
	"errors"
	"strings"
	"testing"

	"parley/channels"
)

type options struct{ Token string }

// silent is a network on which nothing is said.
type silent struct {
	channels.Channel
	name string
	options
}

func TestFactoryOfChecksAndDecodes(t *testing.T) {
	t.Parallel()
	refused := errors.New("token is missing")
	f := channels.FactoryOf("silent", func(name string, o options, _ channels.Deps) (*silent, error) {
		if o.Token == "" {
			return nil, refused
		}
		return &silent{name: name, options: o}, nil
	})
	o, ok := f.Options().(*options)
	if !ok || f.Network != "silent" || *o != (options{}) {
		t.Fatalf("network %q, options %#v", f.Network, f.Options())
	}
	if ch, err := f.New("one", o, channels.Deps{}); ch != nil || !errors.Is(err, refused) {
		t.Errorf("without a token: %#v, %v", ch, err)
	}
	o.Token = "t"
	if ch, err := f.New("one", o, channels.Deps{}); err != nil || ch.(*silent).name != "one" || ch.(*silent).Token != "t" {
		t.Errorf("%#v, %v", ch, err)
	}
	if _, err := f.New("one", &struct{}{}, channels.Deps{}); err == nil || !strings.Contains(err.Error(), "*channels_test.options") {
		t.Errorf("another's options: %v", err)
	}
}
