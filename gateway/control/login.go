package control

import (
	"context"
	"time"

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

// LoginChannel begins to link a channel, or joins the attempt that is under way, and returns with its first code. phone asks
// for a code to type instead of one to scan.
func (c *Control) LoginChannel(ctx context.Context, call Call, name, phone string) (Login, error) {
	if err := c.may(call, "channel.login"); err != nil {
		return Login{}, err
	}
	if _, err := c.channel(name); err != nil {
		return Login{}, err
	}
	// Before the attempt: who gets the code may link, whatever becomes of us.
	if err := c.Store.Audit(c.auditRow(call, workspace.AuditChannelLogin, map[string]any{"channel": name, "phone": phone != ""})); err != nil {
		return Login{}, err
	}
	l, err := c.Logins.Begin(name, phone)
	if err != nil || l.State != transport.LoginWaiting || l.QR+l.Code != "" {
		return l, err
	}
	ctx, cancel := context.WithTimeout(ctx, codeWithin)
	defer cancel()
	return c.Logins.Next(ctx, name, l.Step)
}

// ChannelLogin is how far a login has come. It waits up to 25 seconds for a step behind after; less than 0: it does not.
func (c *Control) ChannelLogin(ctx context.Context, call Call, name string, after int) (Login, error) {
	if err := c.may(call, "channel.login"); err != nil {
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
func (c *Control) CancelLogin(ctx context.Context, call Call, name string) error {
	if err := c.may(call, "channel.login"); err != nil {
		return err
	}
	if _, err := c.channel(name); err != nil {
		return err
	}
	return c.Logins.Cancel(ctx, name)
}

// LogoutChannel unlinks a channel from its account.
func (c *Control) LogoutChannel(ctx context.Context, call Call, name string) (Channel, error) {
	if err := c.may(call, "channel.logout"); err != nil {
		return Channel{}, err
	}
	if _, err := c.channel(name); err != nil {
		return Channel{}, err
	}
	if err := c.Logins.Logout(ctx, name); err != nil {
		return Channel{}, err
	}
	if err := c.Store.Audit(c.auditRow(call, workspace.AuditChannelLogout, map[string]any{"channel": name})); err != nil {
		return Channel{}, err
	}
	return c.channel(name)
}
