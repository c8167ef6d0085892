package control

import (
	"context"
	"slices"
	"time"

	"parley/channels"
	"parley/gateway/transport"
)

// Channel as people see it.
type Channel struct {
	Name    string         `json:"name"`
	Network string         `json:"type"`
	Account string         `json:"account,omitempty"`
	State   channels.State `json:"state"`
	Since   time.Time      `json:"since"`
	Cause   string         `json:"cause,omitempty"`
	Hint    string         `json:"hint,omitempty"`
}

// Tested is what a look at a channel's account found. OK says that nothing needs a person.
type Tested struct {
	Channel  string             `json:"channel"`
	OK       bool               `json:"ok"`
	Findings []channels.Finding `json:"findings"`
}

// testWithin bounds how long a network may take to answer a test.
const testWithin = 20 * time.Second

// Channels lists the configured channels with their state.
func (c *Control) Channels(_ context.Context, call Call) ([]Channel, error) {
	if err := c.may(call, "channels"); err != nil {
		return nil, err
	}
	return c.channels(), nil
}

func (c *Control) channels() (out []Channel) {
	for _, ch := range c.Transport.All() {
		v := ch.View()
		out = append(out, Channel{Name: v.Name, Network: v.Network, Account: v.Account, State: v.State, Since: v.Since, Cause: v.Cause, Hint: v.Hint})
	}
	return out
}

// Channel is one of them.
func (c *Control) Channel(_ context.Context, call Call, name string) (Channel, error) {
	if err := c.may(call, "channels"); err != nil {
		return Channel{}, err
	}
	return c.channel(name)
}

// TestChannel has a channel ask its network about account, rights and settings. It changes nothing there and takes
// up to 20 seconds.
func (c *Control) TestChannel(ctx context.Context, call Call, name string) (Tested, error) {
	if err := c.may(call, "channel.test"); err != nil {
		return Tested{}, err
	}
	ch, err := c.channel(name)
	if err != nil {
		return Tested{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, testWithin)
	defer cancel()
	list := append([]channels.Finding{standing(ch)}, c.Transport.Named(name).Check(ctx)...)
	return Tested{Channel: name, Findings: list, OK: !slices.ContainsFunc(list, func(f channels.Finding) bool { return !f.OK })}, nil
}

func (c *Control) channel(name string) (Channel, error) {
	list := c.channels()
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
