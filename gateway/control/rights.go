package control

import (
	"errors"
	"fmt"
	"strings"

	"parley/channels"
	"parley/gateway/rights"
	"parley/workspace"
)

// rowOf is what docs/rights.md says of a verb that is a function; a test holds them together. Verbs that are values (verb.go) have
// their own. What is not listed is refused.
func rowOf(verb string) rights.Row {
	switch verb {
	case "help", "commands":
		return rights.Row{Owner: rights.Yes, Member: rights.Yes, Guest: rights.Yes}
	case "message", "describe", "file.put", "file.get":
		return rights.Row{Owner: rights.Direct, Member: rights.OwnDirect}
	case "run.output", "backup", "metrics", "sign-in.code":
		return rights.Owners
	}
	return rights.Row{}
}

// Row is what a verb's row in docs/rights.md says, whether it is a value or a function.
func (k *Kernel) Row(verb string) rights.Row {
	if row, ok := k.rows[verb]; ok {
		return row
	}
	return rowOf(verb)
}

// May says whether the actor may use a verb in the place of the call; surfaces use it to show and hide.
func (k *Kernel) May(call Call, verb string) bool { return k.Allow(call, verb) == nil }

// Allow refuses what the actor's role does not reach.
func (k *Kernel) Allow(call Call, verb string) error { return k.Judge(call, verb, k.Row(verb)) }

// Judge is Allow for a verb whose row is at hand.
func (k *Kernel) Judge(call Call, verb string, r rights.Row) error {
	group := call.Kind == channels.Group || call.Kind == channels.Room
	if err := r.Refuse(call.Actor.Role, group); err != nil {
		if (verb == "approve" || verb == "approve.button") && r.Of(call.Actor.Role) == rights.No {
			return workspace.Say(fmt.Errorf("%s: %w", verb, err), "You may not decide this.")
		}
		return fmt.Errorf("%s: %w", verb, err)
	}
	return RefuseBorrowed(call, verb)
}

// ErrBorrowed says that an act wants the gateway's token or a fresh sign-in.
var ErrBorrowed = errors.New("the sign-in is not fresh")

// PairingOwner is the part of pairing.approve that makes an owner.
const PairingOwner = "pairing.approve owner"

// RefuseGuarded refuses a borrowed call a change of configuration keys that reach the host, widen rights or lose something (E68).
func RefuseGuarded(call Call, keys []string) error {
	if !call.Borrowed || len(keys) == 0 {
		return nil
	}
	return workspace.Say(fmt.Errorf("change %q: %w: %w", keys, ErrBorrowed, workspace.ErrDenied),
		"Changing %s wants a fresh sign-in: run `parley webchat` on the machine that Parley runs on, open the link that it prints, "+
			"and do it within ten minutes. Or run `parley config set` there.", strings.Join(keys, ", "))
}

// RefuseBorrowed refuses a borrowed call what would outlive it: a copy of the data with its token, another way in, another owner.
// Whatever comes to be of this kind is named here.
func RefuseBorrowed(call Call, verb string) error {
	if !call.Borrowed {
		return nil
	}
	refused := fmt.Errorf("%s: %w: %w", verb, ErrBorrowed, workspace.ErrDenied)
	var line string
	switch verb {
	case "backup":
		line = "parley backup"
	case "folder.accept":
		line = "parley folder accept <name> <path>"
	case "sign-in.code":
		line = "parley webchat"
	case PairingOwner:
		line = "parley pairing approve <id> --as owner"
	case "link":
		return workspace.Say(refused,
			"Accounts are not linked from a browser. Ask for the code and give it in the two chats that are to be one.")
	default:
		return nil
	}
	return workspace.Say(refused, "This wants a fresh sign-in: run `parley webchat` on the machine that Parley runs on, "+
		"open the link that it prints, and do it within ten minutes. Or run `%s` there.", line)
}
