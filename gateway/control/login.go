package control

import (
	"context"
	"time"

	"parley/workspace"
)

// States of a Login.
const (
	LoginNone    = "none"    // nobody began one
	LoginWaiting = "waiting" // a code is on its way, or shown
	LoginLinked  = "linked"
	LoginFailed  = "failed"
)

// Login is an attempt to link a channel to an account of its network, as far as it has come.
type Login struct {
	Channel string `json:"channel"`
	State   string `json:"state"`             // none, waiting, linked or failed
	Step    int    `json:"step"`              // grows with every change
	QR      string `json:"qr,omitempty"`      // what the code to scan holds
	Image   string `json:"image,omitempty"`   // the same as a picture: a data URL of a PNG
	Code    string `json:"code,omitempty"`    // to type on the phone
	Note    string `json:"note,omitempty"`    // what to do, or what happened
	Expires string `json:"expires,omitempty"` // when the next code comes, RFC 3339
	Error   string `json:"error,omitempty"`   // why it failed
}

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
	l, err := c.House.Login(name, phone)
	if err != nil || l.State != LoginWaiting || l.QR+l.Code != "" {
		return l, err
	}
	ctx, cancel := context.WithTimeout(ctx, codeWithin)
	defer cancel()
	return c.House.LoginStep(ctx, name, l.Step)
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
	return c.House.LoginStep(ctx, name, after)
}

// CancelLogin ends an attempt, and returns when it has ended.
func (c *Control) CancelLogin(ctx context.Context, call Call, name string) error {
	if err := c.may(call, "channel.login"); err != nil {
		return err
	}
	if _, err := c.channel(name); err != nil {
		return err
	}
	return c.House.CancelLogin(ctx, name)
}

// LogoutChannel unlinks a channel from its account.
func (c *Control) LogoutChannel(ctx context.Context, call Call, name string) (Channel, error) {
	if err := c.may(call, "channel.logout"); err != nil {
		return Channel{}, err
	}
	if _, err := c.channel(name); err != nil {
		return Channel{}, err
	}
	if err := c.House.Logout(ctx, name); err != nil {
		return Channel{}, err
	}
	if err := c.Store.Audit(c.auditRow(call, workspace.AuditChannelLogout, map[string]any{"channel": name})); err != nil {
		return Channel{}, err
	}
	return c.channel(name)
}

// ErrNoLogin is for networks whose account is in the configuration.
func ErrNoLogin(name string) error {
	return workspace.Say(workspace.ErrInvalid, "Channel %q needs no login: its account is in the configuration.", name)
}
