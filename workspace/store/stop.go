package store

import (
	"parley/workspace"
)

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
	return out, t.audit(workspace.AuditRow{Kind: workspace.AuditStopped, Actor: st.By, Via: st.Via, What: map[string]any{"runs": runs, "sessions": len(list)}})
}
