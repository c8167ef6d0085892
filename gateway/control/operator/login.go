package operator

import (
	"context"
	"net/http"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/gateway/transport"
	"parley/workspace"
)

// Login is an attempt to link a channel, as far as it has come.
type Login = transport.Login

// codeWithin bounds how long the first code may take, loginHold how long a question for the next step is held.
const (
	codeWithin = 20 * time.Second
	loginHold  = 25 * time.Second
)

// LoginIn names a channel to be linked.
type LoginIn struct {
	ByChannel
	Phone string `json:"phone,omitempty" help:"*number* with country code, for a code to type; left out: a code to scan"`
}

// LoginChannel begins to link a channel, or joins the attempt that is under way, and returns with its first code.
var LoginChannel = control.Verb[*Operator, LoginIn, Login]{
	Name: "channel.login", Help: "Begin to link one to an account, or join the attempt under way", Rights: rights.Owners,
	HTTP: "POST /v1/channels/{name}/login", Status: http.StatusAccepted, Group: "channels", Unkept: true, // a secret
	Do: func(ctx context.Context, c *Operator, call control.Call, in LoginIn) (Login, error) {
		if _, err := c.channel(in.Name); err != nil {
			return Login{}, err
		}
		// Before the attempt: who gets the code may link, whatever becomes of us.
		what := map[string]any{"channel": in.Name, "phone": in.Phone != ""}
		if err := c.Store.Audit(c.AuditRow(call, workspace.AuditChannelLogin, what)); err != nil {
			return Login{}, err
		}
		l, err := c.Logins.Begin(in.Name, in.Phone)
		if err != nil || l.State != transport.LoginWaiting || l.QR+l.Code != "" {
			return l, err
		}
		ctx, cancel := context.WithTimeout(ctx, codeWithin)
		defer cancel()
		return c.Logins.Next(ctx, in.Name, l.Step)
	},
}

// ChannelLogin is how far a login has come. It waits up to 25 seconds for a step behind after; less than 0: it does not.
func (c *Operator) ChannelLogin(ctx context.Context, call control.Call, name string, after int) (Login, error) {
	if err := c.Allow(call, "channel.login"); err != nil {
		return Login{}, err
	}
	if _, err := c.channel(name); err != nil {
		return Login{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, loginHold)
	defer cancel()
	return c.Logins.Next(ctx, name, after)
}

// CancelLogin ends an attempt, and returns when it has ended.
var CancelLogin = control.Verb[*Operator, ByChannel, struct{}]{
	Name: "channel.login", Help: "Give a login up", Rights: rights.Owners,
	HTTP: "DELETE /v1/channels/{name}/login", Status: http.StatusNoContent, Group: "channels",
	Do: func(ctx context.Context, c *Operator, _ control.Call, in ByChannel) (none struct{}, err error) {
		if _, err := c.channel(in.Name); err != nil {
			return none, err
		}
		return none, c.Logins.Cancel(ctx, in.Name)
	},
}

var LogoutChannel = control.Verb[*Operator, ByChannel, Channel]{
	Name: "channel.logout", Help: "Unlink one from its account", Rights: rights.Owners,
	HTTP: "POST /v1/channels/{name}/logout", Group: "channels", CLI: "channel logout <name>",
	Do: func(ctx context.Context, c *Operator, call control.Call, in ByChannel) (Channel, error) {
		if _, err := c.channel(in.Name); err != nil {
			return Channel{}, err
		}
		if err := c.Logins.Logout(ctx, in.Name); err != nil {
			return Channel{}, err
		}
		if err := c.Store.Audit(c.AuditRow(call, workspace.AuditChannelLogout, map[string]any{"channel": in.Name})); err != nil {
			return Channel{}, err
		}
		return c.channel(in.Name)
	},
	Show: func(_ ByChannel, ch Channel) spec.Shown { return spec.Shown{Line: ch.Name + " is logged out"} },
}
