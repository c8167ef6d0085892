package operator

import (
	"context"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/gateway/transport"
)

// Channel as people see it.
type Channel = transport.View

// Tested is what a look at a channel's account found. OK says that nothing needs a person.
type Tested struct {
	Channel  string             `json:"channel"`
	OK       bool               `json:"ok"`
	Findings []channels.Finding `json:"findings"`
}

// testWithin bounds how long a network may take to answer a test.
const testWithin = 20 * time.Second

var ListChannels = control.Verb[*Operator, struct{}, spec.List[Channel]]{
	Name: "channels", Help: "List the channels and how they are", Rights: rights.Owners,
	HTTP: "GET /v1/channels", Group: "channels", CLI: "channel list",
	Do: func(_ context.Context, c *Operator, _ control.Call, _ struct{}) (spec.List[Channel], error) {
		return spec.Whole(c.Channels.Views()), nil
	},
	Show: func(_ struct{}, l spec.List[Channel]) spec.Shown {
		s := spec.Shown{Heads: []string{"NAME", "TYPE", "STATE", "SINCE", "CAUSE"}}
		for _, ch := range l.Items {
			s.Rows = append(s.Rows, []any{ch.Name, ch.Network, ch.State, ch.Since, strings.TrimSpace(ch.Cause + " " + ch.Hint)})
		}
		return s
	},
}

// ByChannel names a channel.
type ByChannel struct {
	Name string `path:"name"`
}

var ShowChannel = control.Verb[*Operator, ByChannel, Channel]{
	Name: "channels", Help: "Say how one is", Rights: rights.Owners, HTTP: "GET /v1/channels/{name}", Group: "channels",
	Do: func(_ context.Context, c *Operator, _ control.Call, in ByChannel) (Channel, error) {
		return c.channel(in.Name)
	},
}

// TestChannel has a channel ask its network. It changes nothing there and takes up to 20 seconds.
var TestChannel = control.Verb[*Operator, ByChannel, Tested]{
	Name: "channel.test", Help: "Have one ask its network about account, rights and settings", Rights: rights.Owners,
	HTTP: "POST /v1/channels/{name}/test", Group: "channels",
	Do: func(ctx context.Context, c *Operator, _ control.Call, in ByChannel) (Tested, error) {
		ch, err := c.channel(in.Name)
		if err != nil {
			return Tested{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, testWithin)
		defer cancel()
		list := append([]channels.Finding{standing(ch)}, c.Channels.Named(in.Name).Check(ctx)...)
		bad := func(f channels.Finding) bool { return !f.OK }
		return Tested{Channel: in.Name, Findings: list, OK: !slices.ContainsFunc(list, bad)}, nil
	},
}

func (c *Operator) channel(name string) (Channel, error) {
	list := c.Channels.Views()
	if i := slices.IndexFunc(list, func(ch Channel) bool { return ch.Name == name }); i >= 0 {
		return list[i], nil
	}
	return Channel{}, transport.NoChannel(name)
}

// standing is how the connection is, as a finding.
func standing(ch Channel) channels.Finding {
	f := channels.Finding{What: inWords(ch.State), Hint: ch.Hint}
	switch ch.State {
	case channels.Ready, channels.Idle:
		f.OK = true
	case channels.Connecting:
		f.OK = ch.Cause == ""
	}
	if ch.Cause != "" {
		f.What += ": " + ch.Cause
	}
	return f
}

func inWords(s channels.State) string {
	switch s {
	case channels.Ready:
		return "it is connected"
	case channels.Idle:
		return "it is well, and nobody is there"
	case channels.Connecting:
		return "it is connecting"
	case channels.Deaf:
		return "it is connected, and hears nothing"
	case channels.Needs:
		return "it waits for a person"
	case channels.Failed:
		return "it cannot go on"
	}
	return "it is " + string(s)
}
