package workspace

import (
	"time"

	"parley/channels"
)

// Pairing is a stranger's request to speak in a DM. routes decides what may happen to it; the store keeps it.
// It is bound to one sender of one account, lives seven days, and grants nothing but the role that the
// operator's approval names.
type Pairing struct {
	ID        string // ULID; the request can be approved by it while it lives
	Channel   string // configured name it came through
	Network   channels.Network
	Account   channels.AccountID
	User      channels.UserID
	Name      string // a label
	State     PairingState
	Requested time.Time
	CodeHash  string    // hex SHA-256 of the latest code; empty: no code can be redeemed
	Issued    time.Time // of that code
	Tries     int       // wrong codes since then
	Decided   time.Time
	DecidedBy PersonID
}

// PairingState says what became of a request. Whether an open one is past its age is asked of routes.
type PairingState string

const (
	PairingOpen     PairingState = "open"
	PairingApproved PairingState = "approved"
	PairingDenied   PairingState = "denied"
)
