// Stops: of a session, and of everything.

package store

import (
	"errors"
	"slices"

	"parley/workspace"
)

// Stop records a stop. It is committed before anything is cancelled.
type Stop struct {
	Session workspace.SessionID
	By      workspace.PersonID
	// Requester limits the stop to turns and queued inputs of one person; empty: whoever's (an owner).
	Requester workspace.PersonID
	Before    int64 // only runs that began with, and queued inputs with, a smaller seq; 0: any run, no queued input
}

// Stopped is what a Stop touched.
type Stopped struct {
	Run    workspace.RunID
	Below  []workspace.RunID // live helpers of it, at any depth: stopped too
	Queued []int64           // seqs of cancelled inputs
	Parts  int64             // unsent parts that were cancelled
}

// Stop commits a stop by itself; RunCommand does so with a reply.
func (s *Store) Stop(st Stop) (Stopped, error) {
	var out Stopped
	err := s.do("stop", func(t *tx) (err error) {
		out, err = t.stop(st)
		return err
	})
	return out, err
}

func (st Stop) apply(t *tx, did *Did) (err error) {
	did.Stopped, err = t.stop(st)
	return err
}

func (t *tx) stop(st Stop) (out Stopped, err error) {
	var id string
	runs := st.Before
	if runs == 0 {
		runs = 1 << 62
	}
	err = t.Row(`UPDATE runs SET stop_by = ? WHERE session_id = ? AND state IN ('running', 'waiting', 'paused') AND (? = '' OR requester = ?)
		AND COALESCE((SELECT MIN(i.seq) FROM inputs i WHERE i.session_id = runs.session_id AND i.`+openInput+` AND i.run_id = runs.id), 0) < ?
		RETURNING id`, []any{string(st.By), string(st.Session), string(st.Requester), string(st.Requester), runs}, &id)
	if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return out, err
	}
	out.Run = workspace.RunID(id)
	if out.Below, err = t.stopBelow(id, string(st.By)); err != nil {
		return out, err
	}
	err = t.Rows(`UPDATE inputs SET state = 'cancelled', reason = 'stopped' WHERE session_id = ? AND `+openInput+`
		AND state = 'queued' AND mode = 'turn' AND seq < ? AND (? = '' OR person_id = ?) RETURNING seq`,
		[]any{string(st.Session), st.Before, string(st.Requester), string(st.Requester)}, func(scan func(...any) error) error {
			var seq int64
			err := scan(&seq)
			out.Queued = append(out.Queued, seq)
			return err
		})
	if err != nil {
		return out, err
	}
	slices.Sort(out.Queued)
	out.Parts, err = t.Exec(`UPDATE parts SET state = 'cancelled' WHERE `+openPart+` AND state IN ('ready', 'parked')
		AND EXISTS (SELECT 1 FROM outbound o JOIN runs r ON r.id = o.run_id WHERE o.id = parts.outbound_id AND r.session_id = ?
		AND o.kind = 'answer' AND (? = '' OR r.requester = ?)
		AND r.started < COALESCE((SELECT received FROM inputs WHERE seq = ?), 9000000000000000000))`,
		string(st.Session), string(st.Requester), string(st.Requester), st.Before)
	return out, err
}

// stopBelow records the stop on every live helper below a run.
func (t *tx) stopBelow(run, by string) (below []workspace.RunID, err error) {
	if run == "" {
		return nil, nil
	}
	err = t.Rows(`WITH RECURSIVE below(id) AS (SELECT id FROM runs WHERE parent_run = ?
		UNION SELECT r.id FROM runs r JOIN below b ON r.parent_run = b.id)
		UPDATE runs SET stop_by = ? WHERE id IN (SELECT id FROM below) AND state IN ('running', 'waiting', 'paused') RETURNING id`,
		[]any{run, by}, func(scan func(...any) error) error {
			var id workspace.RunID
			err := scan(&id)
			below = append(below, id)
			return err
		})
	slices.Sort(below)
	return below, err
}

// StopAll records a stop of every run and of every message that waits, in all sessions.
type StopAll struct {
	By     workspace.PersonID
	Via    string
	Before int64 // only runs that began with, and queued inputs with, a smaller seq
}

// StoppedIn is what a StopAll touched in one session.
type StoppedIn struct {
	Key     string // of the session
	Stopped Stopped
}

func (st StopAll) apply(t *tx, did *Did) (err error) {
	did.All, err = t.stopAll(st)
	return err
}

// stopAll is stop for each session with something open. Its line in the audit log says how much it was.
func (t *tx) stopAll(st StopAll) (out []StoppedIn, err error) {
	type open struct {
		id  workspace.SessionID
		key string
	}
	var list []open
	err = t.Rows(`SELECT s.id, s.key FROM sessions s WHERE s.id IN (SELECT session_id FROM runs WHERE `+liveRun+`
		UNION SELECT session_id FROM inputs WHERE `+openInput+` AND state = 'queued') ORDER BY s.id`, nil, func(scan func(...any) error) error {
		var o open
		err := scan(&o.id, &o.key)
		list = append(list, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	runs := 0
	for _, o := range list {
		got, err := t.stop(Stop{Session: o.id, By: st.By, Before: st.Before})
		if err != nil {
			return nil, err
		}
		if got.Run != "" {
			runs++
		}
		out = append(out, StoppedIn{Key: o.key, Stopped: got})
	}
	return out, t.audit(workspace.AuditRow{Kind: workspace.AuditStopped, Actor: st.By, Via: st.Via,
		What: map[string]any{"runs": runs, "sessions": len(list)}})
}
