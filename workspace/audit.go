package workspace

import (
	"encoding/json"
	"time"
)

// AuditRow is one act that an operator may want to prove later: who did what, by which way. Its row is committed with
// the act that it tells of.
type AuditRow struct {
	At    time.Time // zero: when the row is stored
	Kind  string    // one of the Audit kinds
	Actor PersonID  // who did it; empty: the gateway itself
	Via   string    // the surface: a channel's name, api, cli, config …
	// What are the facts: plain text, numbers within ±2^53, booleans, lists and maps of them. Text is cut at
	// AuditTextMax bytes, with the hash of the whole behind it. No secret belongs here; the store hides those it knows.
	What map[string]any
}

// AuditTextMax is how many bytes of one text a row keeps.
const AuditTextMax = 4 << 10

// Kinds of audited acts.
const (
	AuditApprovalAsked    = "approval.asked"
	AuditApprovalDecided  = "approval.decided"
	AuditApprovalExpired  = "approval.expired"
	AuditApprovalRevoked  = "approval.revoked" // a grant for a session was taken back
	AuditExecStarted      = "exec.started"
	AuditExecRefused      = "exec.refused"
	AuditExecEnded        = "exec.ended"
	AuditEgressRefused    = "egress.refused"   // a command wanted to reach what is not on the list; not every time
	AuditControlRefused   = "control.refused"  // a tool wanted to write what programs of the host obey; not every time
	AuditControlHeld      = "control.held"     // a command had made such a thing, and it was renamed
	AuditControlAccepted  = "control.accepted" // an owner gave it its name again
	AuditPairingDecided   = "pairing.decided"
	AuditPeopleLinked     = "people.linked"
	AuditConfigLoaded     = "config.loaded" // at a start, where it is another than at the last
	AuditConfigReloaded   = "config.reloaded"
	AuditConfigRefused    = "config.refused" // a change that was not taken
	AuditConfigChanged    = "config.changed" // somebody has the gateway change these keys
	AuditConfigUndone     = "config.undone"  // since a part failed by it
	AuditRunPaused        = "run.paused"
	AuditRunResumed       = "run.resumed"
	AuditStopped          = "stop.all"
	AuditFilesRemoved     = "files.removed" // from a work folder
	AuditChannelLogin     = "channel.login"
	AuditChannelLogout    = "channel.logout"
	AuditStoreLoss        = "store.loss"        // a start that went on although the database lacked what it held
	AuditStoreFresh       = "store.fresh"       // a start from nothing, with all that was there moved aside
	AuditStoreUnwitnessed = "store.unwitnessed" // what would show a loss was missing itself, and was made again
	AuditSignInCode       = "signin.code"       // one was made
	AuditSignIn           = "signin.done"       // one was used
)

// AuditEntry is a row as it stands in the chain.
type AuditEntry struct {
	Chain string // one per gateway: an id made with its first row
	N     int64  // from 1, without a gap
	Prev  string // Hash of the row before; empty: the first
	Hash  string // hex SHA-256 of Prev, a line feed, and Body
	Body  json.RawMessage
}

// Row is what an entry tells.
func (e AuditEntry) Row() (AuditRow, error) {
	var b struct {
		At               int64
		Kind, Actor, Via string
		What             map[string]any
	}
	err := json.Unmarshal(e.Body, &b)
	return AuditRow{At: time.UnixMilli(b.At), Kind: b.Kind, Actor: PersonID(b.Actor), Via: b.Via, What: b.What}, err
}

// AuditHead names the last row of a chain: whoever keeps one elsewhere can tell later that nothing was cut off.
type AuditHead struct {
	Chain string
	N     int64
	Hash  string
}

// AuditReport is what a check of the audit log found.
type AuditReport struct {
	Rows  int64
	Heads []AuditHead // of each chain, as it is in the database
	Bad   *AuditFault // the first row that is wrong; nil: all are right
	// Unwitnessed: no newest row was noted beside the database, so that nothing tells whether the end was cut off.
	Unwitnessed bool
}

// AuditFault is the first wrong row of a chain.
type AuditFault struct {
	Chain string
	N     int64
	Why   string
}
