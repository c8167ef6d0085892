package routes

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/workspace"
)

// Limits of a pairing.
const (
	CodeLife    = 10 * time.Minute   // of one code, and the least time between two codes for one sender
	RequestLife = 7 * 24 * time.Hour // of the request, which can be approved by its id
	CodeTries   = 5                  // wrong codes before the right one is worth nothing
)

// 32 symbols without 0 O 1 I, so that eight of them are 40 bits and nobody mistakes one for another.
const (
	codeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	codeLength   = 8
)

// Why a pairing was not approved. Each comes wrapped with a sentence for the chat.
var (
	ErrCodeWrong   = errors.New("pairing code is wrong")
	ErrCodeExpired = errors.New("pairing code has expired")
	ErrCodeTries   = errors.New("too many wrong pairing codes")
	ErrDecided     = errors.New("pairing was decided before")
	ErrRequestGone = errors.New("pairing request has expired")
)

// NewCode is a fresh code of 40 random bits, shown as XXXX-XXXX. It is shown once and stored as CodeHash only.
func NewCode() string {
	var b [codeLength]byte
	rand.Read(b[:]) // never fails: the program crashes instead
	for i, x := range b {
		b[i] = codeAlphabet[x%byte(len(codeAlphabet))] // 256 is a multiple of 32: no bias
	}
	return string(b[:4]) + "-" + string(b[4:])
}

// NormalizeCode turns what a person typed into the form that is hashed. ok is false for what cannot be a code.
func NormalizeCode(s string) (code string, ok bool) {
	var b strings.Builder
	for _, r := range strings.ToUpper(s) {
		switch {
		case strings.ContainsRune(codeAlphabet, r):
			b.WriteRune(r)
		case r == '-', r == ' ', r == '\t', r == '\n', r == '\r':
		default:
			return "", false
		}
		if b.Len() > codeLength {
			return "", false
		}
	}
	return b.String(), b.Len() == codeLength
}

// CodeHash is what is stored of a code: hex SHA-256 of its normal form; empty for what cannot be a code.
func CodeHash(s string) string {
	code, ok := NormalizeCode(s)
	if !ok {
		return ""
	}
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// AskPairing is a stranger's message in a DM. last is their latest request (zero: none), fresh a new one with its
// ID and sender filled in, code a NewCode. It returns the request to store and whether the code is to be sent to
// them. A sender gets one code in CodeLife, and silence after a denial for as long as the denied request lives.
func AskPairing(last, fresh workspace.Pairing, code string, now time.Time) (p workspace.Pairing, send bool) {
	p = last
	if last.State == "" || last.State == workspace.PairingApproved || requestGone(last, now) {
		p, p.State, p.Requested = fresh, workspace.PairingOpen, now
	}
	if p.State != workspace.PairingOpen || codeLives(last, now) {
		return last, false
	}
	p.CodeHash, p.Issued, p.Tries = CodeHash(code), now, 0
	return p, true
}

// RedeemCode approves the request that the typed code belongs to. Store every request in changed, whatever the
// error: a code that fits nowhere is a try against each code that lives. The caller has checked that by may approve.
func RedeemCode(requests []workspace.Pairing, typed string, by workspace.PersonID, now time.Time) (approved workspace.Pairing, changed []workspace.Pairing, err error) {
	hash := CodeHash(typed)
	var fits *workspace.Pairing
	for i := range requests {
		if sameHash(requests[i].CodeHash, hash) {
			fits = &requests[i]
		}
	}
	if fits == nil {
		for _, p := range requests {
			if p.State == workspace.PairingOpen && codeLives(p, now) && p.Tries < CodeTries {
				p.Tries++
				changed = append(changed, p)
			}
		}
		return workspace.Pairing{}, changed, workspace.Say(ErrCodeWrong, "That code does not fit any request. Codes live ten minutes and take five tries.")
	}
	switch {
	case fits.Tries >= CodeTries:
		err = workspace.Say(ErrCodeTries, "Too many wrong codes were tried. Approve the request by its id %s, or let them ask again.", workspace.Short(fits.ID))
	case fits.State == workspace.PairingOpen && !codeLives(*fits, now):
		err = workspace.Say(ErrCodeExpired, "That code has expired. Approve the request by its id %s, or let them ask again.", workspace.Short(fits.ID))
	default:
		approved, err = DecidePairing(*fits, workspace.PairingApproved, by, now)
	}
	if err != nil {
		return workspace.Pairing{}, nil, err
	}
	return approved, []workspace.Pairing{approved}, nil
}

// DecidePairing approves or denies a request by its id, and makes its code worthless. The caller has checked that
// by may do so.
func DecidePairing(p workspace.Pairing, to workspace.PairingState, by workspace.PersonID, now time.Time) (workspace.Pairing, error) {
	switch {
	case to != workspace.PairingApproved && to != workspace.PairingDenied:
		return p, fmt.Errorf("decide pairing %s: state %q: %w", p.ID, to, workspace.ErrInvalid)
	case p.State != workspace.PairingOpen:
		return p, workspace.Say(ErrDecided, "That request was %s before.", p.State)
	case requestGone(p, now):
		return p, workspace.Say(ErrRequestGone, "That request is older than seven days. Let them write again.")
	}
	p.State, p.Decided, p.DecidedBy, p.CodeHash = to, now, by, ""
	return p, nil
}

// PairingOpen says whether the request still waits for a decision.
func PairingOpen(p workspace.Pairing, now time.Time) bool {
	return p.State == workspace.PairingOpen && !requestGone(p, now)
}

func requestGone(p workspace.Pairing, now time.Time) bool {
	return now.Sub(p.Requested) >= RequestLife
}

// codeLives is false before the code was issued too: after a clock that was set back, nothing old opens a door,
// and a stranger is not kept waiting for years.
func codeLives(p workspace.Pairing, now time.Time) bool {
	age := now.Sub(p.Issued)
	return age >= 0 && age < CodeLife
}

func sameHash(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
