package gateway

import (
	"fmt"
	"slices"
	"strings"

	"parley/channels"
	"parley/gateway/command"
)

// Manifest is the description of the app that a network wants before there is an account: what to paste at the network's
// own site. names offers every command under its own name, beside the one that takes them all.
func Manifest(factories []channels.Factory, network, name, url string, names bool) ([]byte, error) {
	var have []string
	for _, f := range factories {
		if f.Manifest == nil {
			continue
		}
		have = append(have, string(f.Network))
		if string(f.Network) != network {
			continue
		}
		ask := channels.ManifestAsk{Name: name, URL: url}
		if names {
			ask.Commands = slices.Clone(command.Menu())
		}
		return f.Manifest(ask)
	}
	return nil, fmt.Errorf("only these networks want a manifest: %s", strings.Join(have, ", "))
}
