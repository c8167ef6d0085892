// Approvals: questions that a run waits on, and their answers.

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// Ask is how a run begins to wait for a person.
type Ask struct {
	Run workspace.Run
	// Approval comes without State and Created. Expires is set.
	Approval  workspace.Approval
	Questions []NewOutbound // one for each room that hears it
}

// Asked is what an Ask stored.
type Asked struct {
	Approval workspace.Approval
	// Again says that this very call had been asked about before: Approval is that one, and nothing was stored. The run
	// waits all the same if it is still open.
	Again   bool
	StopBy  workspace.PersonID // set: nothing was stored, the run is to end
	Entries []workspace.Entry
	Pushed  []workspace.Outbound
}

// Ask commits a question with the run's move to waiting and what tells of it, and returns after the commit. A call is
// asked about once: a second time finds the first. workspace.ErrConflict means that the run is another process's or not running.
func (s *Store) Ask(a Ask) (Asked, error) {
	var out Asked
	err := s.do("ask", func(t *tx) (err error) {
		out, err = t.ask(a)
		return err
	})
	return out, err
}

func (t *tx) ask(a Ask) (out Asked, err error) {
	var stopBy string
	if err := t.Row(`SELECT stop_by FROM runs WHERE id = ? AND epoch = ? AND state = 'running'`, []any{string(a.Run.ID), t.Epoch},
		&stopBy); err != nil {
		return out, fmt.Errorf("ask in run %s: %w", a.Run.ID, orConflict(err))
	}
	if stopBy != "" {
		return Asked{StopBy: workspace.PersonID(stopBy)}, nil
	}
	ap := a.Approval
	ap.State, ap.Created, ap.Body.After = workspace.ApprovalPending, fromMillis(t.Now), t.s.cache.seq
	if out.Again, err = t.insertApproval(&ap); err != nil {
		return out, err
	}
	out.Approval = ap
	if !out.Again || ap.State == workspace.ApprovalPending {
		if err := t.One("wait", `UPDATE runs SET state = 'waiting', `+waitBegins+` WHERE id = ? AND epoch = ? AND state = 'running'`,
			t.Now, string(a.Run.ID), t.Epoch); err != nil {
			return out, err
		}
	}
	if out.Again {
		return out, nil
	}
	asked := approvalEntry(ap, workspace.EventAsked)
	asked.Body.Content = []workspace.Content{{Kind: workspace.Text, Text: ap.Body.Shown}}
	if out.Entries, err = t.appendEntries(ap.SessionID, []workspace.Entry{asked}); err != nil {
		return out, err
	}
	if err := t.audit(approvalRow(workspace.AuditApprovalAsked, ap)); err != nil {
		return out, err
	}
	return out, t.outbounds(a.Questions, &out.Pushed)
}

// approvalRow is what the audit log says of an approval.
func approvalRow(kind string, ap workspace.Approval) workspace.AuditRow {
	what := map[string]any{"approval": string(ap.ID), "state": string(ap.State), "tool": ap.Tool, "hash": ap.Hash, "run": string(ap.RunID),
		"call": ap.CallID, "session": ap.Session, "agent": string(ap.Agent), "requester": string(ap.Requester)}
	for name, text := range map[string]string{"domain": ap.Domain, "grant": string(ap.Grant), "reason": ap.Reason, "external": ap.External} {
		if text != "" {
			what[name] = text
		}
	}
	if r := ap.Body.Rule; r != nil && ap.Grant == workspace.ForSession {
		what["allows"], what["program"], what["until"] = ap.Body.Rule.Says(), r.Program, ap.Body.Rule.Until(ap.Decided).UTC().Format(time.RFC3339)
	}
	if kind == workspace.AuditApprovalAsked {
		what["shown"] = ap.Body.Shown
		return workspace.AuditRow{Kind: kind, Actor: ap.Requester, Via: "turn", What: what}
	}
	return workspace.AuditRow{Kind: kind, Actor: ap.DecidedBy, Via: ap.Via, What: what}
}

const approvalColumns = sealedApproval + `, body, sum, state, decided_at, decided_by, via, scope, reason, external_ref, revoked_at`

// insertApproval stores one, or finds the one that its call has.
func (t *tx) insertApproval(ap *workspace.Approval) (again bool, err error) {
	body, err := json.Marshal(ap.Body)
	if err != nil {
		return false, err
	}
	text := engine.Clean(string(body))
	args := []any{string(ap.ID), string(ap.RunID), ap.CallID, string(ap.SessionID), ap.Session, string(ap.Agent), ap.Tool, ap.Hash,
		string(ap.Requester), string(ap.Role), string(ap.RoomID), ap.Domain, millis(ap.Created), millis(ap.Expires)}
	n, err := t.Exec(`INSERT INTO approvals (`+sealedApproval+`, seal, body, sum, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
		?, ?, 'pending') ON CONFLICT DO NOTHING`, append(args, engine.Seal(args...), text, engine.Sum(text))...)
	if err != nil || n == 1 {
		return false, err
	}
	found, err := t.approvals(`run_id = ? AND call_id = ?`, string(ap.RunID), ap.CallID)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("ask about call %s: %w", ap.CallID, workspace.ErrConflict)
	}
	if err != nil {
		return false, err
	}
	*ap = found[0]
	return true, nil
}

func (t *tx) approvals(where string, args ...any) ([]workspace.Approval, error) {
	var out []workspace.Approval
	err := t.Rows(`SELECT `+approvalColumns+` FROM approvals WHERE `+where, args, func(scan func(...any) error) error {
		ap, err := scanApproval(scan)
		out = append(out, ap)
		return err
	})
	return out, err
}

func scanApproval(scan func(...any) error) (ap workspace.Approval, err error) {
	var body string
	var check, created, expires, decided, revoked int64
	if err := scan(&ap.ID, &ap.RunID, &ap.CallID, &ap.SessionID, &ap.Session, &ap.Agent, &ap.Tool, &ap.Hash, &ap.Requester, &ap.Role,
		&ap.RoomID, &ap.Domain, &created, &expires, &body, &check, &ap.State, &decided, &ap.DecidedBy, &ap.Via, &ap.Grant, &ap.Reason,
		&ap.External, &revoked); err != nil {
		return ap, err
	}
	if engine.Sum(body) != check {
		return ap, fmt.Errorf("approval %s: %w", ap.ID, ErrDamaged)
	}
	ap.Created, ap.Expires, ap.Decided, ap.Revoked = fromMillis(created), fromMillis(expires), fromMillis(decided), fromMillis(revoked)
	return ap, decode(body, &ap.Body)
}

// approvalEntry is the transcript's line about an approval.
func approvalEntry(ap workspace.Approval, kind string) workspace.Entry {
	ev := &workspace.ApprovalEvent{ID: ap.ID, CallID: ap.CallID, Tool: ap.Tool, Domain: ap.Domain, State: ap.State, Expires: ap.Expires,
		By: ap.DecidedBy, Via: ap.Via, Grant: ap.Grant, Allows: ap.Body.Rule.Says()}
	if kind == workspace.EventAsked {
		ev.Grants = ap.Body.Grants
	}
	return workspace.Entry{RunID: ap.RunID, Role: workspace.RoleEvent, Body: workspace.EntryBody{Type: kind, Reason: ap.Reason, Approval: ev}}
}

// Verdict is an answer to a question, whoever gives it. It is taken once.
type Verdict struct {
	ID       workspace.ApprovalID
	To       workspace.ApprovalState // approved, denied, expired, cancelled
	By       workspace.PersonID
	Via      string
	Grant    workspace.Grant // of approved; empty: once
	Reason   string
	External string
}

// Decide takes the first answer to a question and returns after the commit. workspace.ErrConflict means that there had
// been one, or that the table draws no such edge: the approval that comes with it says which.
func (s *Store) Decide(v Verdict) (workspace.Approval, []workspace.Entry, error) {
	var ap workspace.Approval
	var entries []workspace.Entry
	err := s.do("decide", func(t *tx) (err error) {
		ap, entries, err = t.decide(v)
		return err
	})
	if !errors.Is(err, workspace.ErrConflict) {
		return ap, entries, err
	}
	now, readErr := s.Approval(v.ID)
	return now, nil, errors.Join(err, readErr)
}

func (v Verdict) apply(t *tx, did *Did) error {
	ap, _, err := t.decide(v)
	if err == nil {
		did.Decided = &ap
	}
	return err
}

func (t *tx) decide(v Verdict) (ap workspace.Approval, entries []workspace.Entry, err error) {
	from := froms(workspace.Approvals, v.To)
	if from == "" || v.To == workspace.ApprovalConsumed {
		return ap, nil, fmt.Errorf("approval to %q: %w", v.To, workspace.ErrConflict)
	}
	if v.To == workspace.ApprovalApproved && v.Grant == "" {
		v.Grant = workspace.Once
	}
	if err := t.One("decide an approval", `UPDATE approvals SET state = ?, decided_at = ?, decided_by = ?, via = ?, scope = ?, reason = ?,
		external_ref = ? WHERE id = ? AND state IN (`+from+`)`, string(v.To), t.Now, string(v.By), v.Via, string(v.Grant), engine.Clean(v.Reason),
		engine.Clean(v.External), string(v.ID)); err != nil {
		return ap, nil, err
	}
	list, err := t.approvals(`id = ?`, string(v.ID))
	if err != nil || len(list) == 0 {
		return ap, nil, errors.Join(err, workspace.ErrConflict)
	}
	ap = list[0]
	kind := workspace.AuditApprovalDecided
	if ap.State == workspace.ApprovalExpired {
		kind = workspace.AuditApprovalExpired
	}
	if err := t.audit(approvalRow(kind, ap)); err != nil {
		return ap, nil, err
	}
	entries, err = t.appendEntries(ap.SessionID, []workspace.Entry{approvalEntry(ap, workspace.EventResolved)})
	return ap, entries, err
}

// consume marks an approval as used by the very step that starts its call.
func (t *tx) consume(st workspace.Step) error {
	if st.State != workspace.StepStarted {
		return fmt.Errorf("consume approval %s by a step %s: %w", st.Approval, st.State, workspace.ErrConflict)
	}
	return t.One("consume an approval", `UPDATE approvals SET state = 'consumed' WHERE id = ? AND run_id = ? AND call_id = ?
		AND state = 'approved'`, string(st.Approval), string(st.RunID), st.CallID)
}

// cancelApprovals ends what is open of a run's questions with the run.
func (t *tx) cancelApprovals(run workspace.RunID, end workspace.RunState) (list []workspace.Approval, events []workspace.Entry, err error) {
	via, reason := "gateway", "the turn ended"
	if end == workspace.RunStopped {
		via, reason = "stop", "the turn was stopped"
	}
	list, err = t.approvals(`run_id = ? AND `+openApproval, string(run))
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		if err := t.One("cancel an approval", `UPDATE approvals SET state = 'cancelled', decided_at = ?, via = ?, reason = ? WHERE id = ?
			AND `+openApproval, t.Now, via, reason, string(list[i].ID)); err != nil {
			return nil, nil, err
		}
		list[i].State, list[i].Via, list[i].Reason, list[i].Decided = workspace.ApprovalCancelled, via, reason, fromMillis(t.Now)
		events = append(events, approvalEntry(list[i], workspace.EventResolved))
		if err := t.audit(approvalRow(workspace.AuditApprovalDecided, list[i])); err != nil {
			return nil, nil, err
		}
	}
	return list, events, nil
}

func (s *Store) approvals(where string, args ...any) ([]workspace.Approval, error) {
	var out []workspace.Approval
	err := s.db.Many(`SELECT `+approvalColumns+` FROM approvals WHERE `+where, args, func(scan func(...any) error) error {
		ap, err := scanApproval(scan)
		out = append(out, ap)
		return err
	})
	return out, err
}

// Approval reads one.
func (s *Store) Approval(id workspace.ApprovalID) (workspace.Approval, error) {
	return first(s.approvals(`id = ?`, string(id)))
}

// ApprovalOf reads the one that a call was asked about by.
func (s *Store) ApprovalOf(run workspace.RunID, call string) (workspace.Approval, error) {
	return first(s.approvals(`run_id = ? AND call_id = ?`, string(run), call))
}

// ApprovalAskedBy reads the one that a message asks about.
func (s *Store) ApprovalAskedBy(o workspace.Outbound) (workspace.Approval, error) {
	list, err := s.RunApprovals(o.RunID)
	list = slices.DeleteFunc(list, func(ap workspace.Approval) bool { return ap.QuestionKey(o.RoomID) != o.Key })
	return first(list, err)
}

// RunApprovals lists what a run has asked, oldest first.
func (s *Store) RunApprovals(run workspace.RunID) ([]workspace.Approval, error) {
	return s.approvals(`run_id = ? ORDER BY id`, string(run))
}

// OpenApprovals lists those that wait for an answer, and those whose call has not begun yet, oldest first.
func (s *Store) OpenApprovals() ([]workspace.Approval, error) {
	return s.approvals(openApproval + ` ORDER BY id`)
}

// ApprovalsBefore lists approvals whose ids come before one, newest first; empty: from the newest on.
func (s *Store) ApprovalsBefore(before workspace.ApprovalID, limit int) ([]workspace.Approval, error) {
	if before == "" {
		before = afterAll
	}
	return s.approvals(`id < ? ORDER BY id DESC LIMIT ?`, string(before), limit)
}

// OpenQuestions lists the messages that ask and have not been told the answer.
func (s *Store) OpenQuestions() ([]workspace.Outbound, error) {
	return s.outbounds(`o.` + question + ` AND o.state = 'open' ORDER BY o.n`)
}

// QuestionsOf lists the messages by which a room was asked.
func (s *Store) QuestionsOf(room workspace.RoomID) ([]workspace.Outbound, error) {
	return s.outbounds(`o.`+question+` AND o.room_id = ? ORDER BY o.n`, string(room))
}

// standing are grants for a session that nobody has taken back and whose generation goes on.
const standing = `scope = 'session' AND state IN ('approved', 'consumed') AND revoked_at = 0
	AND session_id IN (SELECT id FROM sessions WHERE ended = 0)`

// SessionGrants lists the approvals that a person's further calls of a tool go by in one generation of a session.
func (s *Store) SessionGrants(session workspace.SessionID, tool string, agent workspace.AgentID,
	requester workspace.PersonID) ([]workspace.Approval, error) {
	return s.approvals(standing+` AND session_id = ? AND tool = ? AND agent = ? AND requester = ? ORDER BY id`,
		string(session), tool, string(agent), string(requester))
}

// Grants lists all that stand, the newest first. Some of them may be over by the clock.
func (s *Store) Grants() ([]workspace.Approval, error) {
	return s.approvals(standing + ` ORDER BY id DESC`)
}

// Revoke takes a grant for a session back. workspace.ErrConflict means that there is none, or that it was taken back before.
type Revoke struct {
	ID  workspace.ApprovalID
	By  workspace.PersonID
	Via string
}

func (r Revoke) apply(t *tx, did *Did) error {
	if err := t.One("revoke a grant", `UPDATE approvals SET revoked_at = ? WHERE id = ? AND scope = 'session'
		AND state IN ('approved', 'consumed') AND revoked_at = 0`, t.Now, string(r.ID)); err != nil {
		return err
	}
	list, err := t.approvals(`id = ?`, string(r.ID))
	if err != nil || len(list) == 0 {
		return err
	}
	did.Decided = &list[0]
	row := approvalRow(workspace.AuditApprovalRevoked, list[0])
	row.Actor, row.Via = r.By, r.Via
	return t.audit(row)
}
