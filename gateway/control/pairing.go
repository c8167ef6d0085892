package control

import (
	"context"
	"errors"
	"strings"

	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

const pairingsShown = 200

// Pairings lists the newest requests.
func (c *Control) Pairings(_ context.Context, call Call) ([]workspace.Pairing, error) {
	if err := c.may(call, "pairing.list"); err != nil {
		return nil, err
	}
	return c.Store.Pairings(pairingsShown)
}

// ApprovePairing makes the sender of a request a person of the role. which is the code that they were sent, or the
// request's id, whole or short.
func (c *Control) ApprovePairing(_ context.Context, call Call, which string, as workspace.Role) (workspace.Pairing, workspace.Account, error) {
	if err := c.may(call, "pairing.approve"); err != nil {
		return workspace.Pairing{}, workspace.Account{}, err
	}
	if as == workspace.Nobody {
		as = workspace.Guest
	}
	if as != workspace.Guest && as != workspace.Member && as != workspace.Owner {
		return workspace.Pairing{}, workspace.Account{}, workspace.Say(workspace.ErrInvalid, "There is no role %q. Roles are guest, member and owner.", string(as))
	}
	if as == workspace.Owner {
		if err := c.lasting(call, pairingOwner); err != nil {
			return workspace.Pairing{}, workspace.Account{}, err
		}
	}
	list, err := c.Store.Pairings(pairingsShown)
	if err != nil {
		return workspace.Pairing{}, workspace.Account{}, err
	}
	var p workspace.Pairing
	if found, ok := byID(list, which); ok {
		p, err = routes.DecidePairing(found, workspace.PairingApproved, call.Actor.Person, c.Now())
	} else {
		var changed []workspace.Pairing
		p, changed, err = routes.RedeemCode(list, which, call.Actor.Person, c.Now())
		if err != nil && len(changed) > 0 {
			if storeErr := c.Store.PutPairings(changed...); storeErr != nil {
				return workspace.Pairing{}, workspace.Account{}, errors.Join(err, storeErr)
			}
		}
	}
	if err != nil {
		return workspace.Pairing{}, workspace.Account{}, err
	}
	welcome := "You are approved. Write to me as you like; /help says what I can do."
	acc, err := c.decide(call, p, as, &store.NewOutbound{Key: "send:pairing:" + p.ID, Kind: workspace.OutMessage, Text: welcome,
		Spans: []store.Span{{To: len(welcome)}}})
	return p, acc, err
}

// DenyPairing ends a request; its sender hears nothing.
func (c *Control) DenyPairing(_ context.Context, call Call, which string) (workspace.Pairing, error) {
	if err := c.may(call, "pairing.deny"); err != nil {
		return workspace.Pairing{}, err
	}
	list, err := c.Store.Pairings(pairingsShown)
	if err != nil {
		return workspace.Pairing{}, err
	}
	found, ok := byID(list, which)
	if !ok {
		return workspace.Pairing{}, workspace.Say(workspace.ErrNotFound, "There is no request %q.", which)
	}
	p, err := routes.DecidePairing(found, workspace.PairingDenied, call.Actor.Person, c.Now())
	if err != nil {
		return workspace.Pairing{}, err
	}
	_, err = c.decide(call, p, workspace.Nobody, nil)
	return p, err
}

func (c *Control) decide(call Call, p workspace.Pairing, as workspace.Role, notice *store.NewOutbound) (workspace.Account, error) {
	acc, out, err := c.Store.DecidePairing(p, as, notice, c.auditRow(call, workspace.AuditPairingDecided, map[string]any{"request": p.ID, "state": string(p.State),
		"role": string(as), "channel": p.Channel, "network": string(p.Network), "account": string(p.Account), "user": string(p.User), "name": p.Name}))
	if errors.Is(err, workspace.ErrConflict) {
		return acc, workspace.Say(err, "Somebody else decided this request just now.")
	}
	if err != nil {
		return acc, err
	}
	c.House.PeopleChanged()
	c.House.Push(out)
	return acc, nil
}

func byID(list []workspace.Pairing, which string) (workspace.Pairing, bool) {
	for _, p := range list {
		if strings.EqualFold(p.ID, which) || strings.EqualFold(workspace.Short(p.ID), which) {
			return p, true
		}
	}
	return workspace.Pairing{}, false
}
