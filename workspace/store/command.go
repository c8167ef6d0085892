package store

import (
	"encoding/json"

	"parley/workspace"
)

// Command is the end of a command: its input's end and its reply, with the effect, as one unit.
type Command struct {
	Input  workspace.Input
	Failed bool
	Reason string
	Reply  *NewOutbound
	// Text, when set, writes Reply's text from what the unit did. It may be called more than once.
	Text func(Did) string
	// Spans, when set, cuts that text into parts; nil: it is one.
	Spans func(text string) []Span
	// Note, when set, writes the reply into the session's transcript as an event, for surfaces without a room.
	Note   func(Did) string
	Effect Effect
}

// Effect is a change that a command commits; zero fields do nothing. They are done in this order.
type Effect struct {
	Stop          *Stop
	StopAll       *StopAll
	Decide        *Verdict      // the first answer to a question
	Fork          *Fork         // instead of NewGeneration
	NewGeneration workspace.Key // of /new and /reset
	Create        *Create
	Delete        *Delete
	Rename        *Rename
	Overrides     *SetOverrides
	Place         *SetPlace
	Mark          *Mark
	Endings       []Ending
	Unpark        []workspace.OutboundID // late answers that are wanted after all
	Audit         []workspace.AuditRow   // rows of the audit log, in the same commit
	AskLink       *AskLink
	GiveLink      *GiveLink
	// Ask journals an input that is to be answered next, in the session that the rest of the effect leaves.
	Ask *Arrival
}

// SetOverrides replaces a session's overrides, if they are still those of Was.
type SetOverrides struct {
	Session   workspace.SessionID
	Overrides workspace.Overrides
	Was       *workspace.Overrides // nil: whatever they are
}

// Did is what a command's unit changed.
type Did struct {
	Reply   []workspace.Outbound
	Session workspace.SessionID // of a new generation, or of a session that was made
	Again   bool                // the session had been made before by the same Origin: nothing was done
	Stopped Stopped
	All     []StoppedIn          // of StopAll
	Decided *workspace.Approval  // of Decide
	Asked   *workspace.Input     // of Ask; nil: it had been asked before
	Late    []workspace.Outbound // of Unpark
	Joined  workspace.Joined     // of GiveLink
	Told    []workspace.Outbound // what other rooms are told of it
}

// RunCommand commits a command whole.
func (s *Store) RunCommand(c Command) (Did, error) {
	var did Did
	err := s.do("command", func(t *tx) (err error) {
		did = Did{}
		if c.Input.Seq != 0 {
			e := Ending{Seq: c.Input.Seq, From: workspace.InputQueued, To: workspace.InputAnswered, Reason: c.Reason}
			if c.Failed {
				e.To = workspace.InputFailed
			}
			if err := t.endInput(e); err != nil {
				return err
			}
		}
		if err := t.effect(c.Effect, &did); err != nil {
			return err
		}
		if c.Reply == nil {
			return t.noteReply(c, did)
		}
		reply := *c.Reply
		if c.Text != nil {
			reply.Text = c.Text(did)
			reply.Spans = []Span{{To: len(reply.Text)}}
			if c.Spans != nil {
				reply.Spans = c.Spans(reply.Text)
			}
		}
		return t.outbounds([]NewOutbound{reply}, &did.Reply)
	})
	return did, err
}

// noteReply keeps a command and its reply in the transcript of a local session: its surfaces read nothing else.
func (t *tx) noteReply(c Command, did Did) error {
	if c.Note == nil || c.Input.SessionID == "" {
		return nil
	}
	session := c.Input.SessionID
	if did.Session != "" && c.Effect.Create == nil {
		session = did.Session
	}
	_, err := t.appendEntries(session, []workspace.Entry{{InputID: c.Input.ID, Role: workspace.RoleEvent,
		Body: workspace.EntryBody{Type: "command", Content: []workspace.Content{{Kind: workspace.Text, Text: c.Note(did)}}}}})
	return err
}

func (t *tx) effect(e Effect, did *Did) (err error) {
	if again, err := t.made(e.origin(), did); again || err != nil {
		return err
	}
	if err := t.audit(e.Audit...); err != nil {
		return err
	}
	if e.Stop != nil {
		if did.Stopped, err = t.stop(*e.Stop); err != nil {
			return err
		}
	}
	if e.StopAll != nil {
		if did.All, err = t.stopAll(*e.StopAll); err != nil {
			return err
		}
	}
	if e.Decide != nil {
		ap, _, err := t.decide(*e.Decide)
		if err != nil {
			return err
		}
		did.Decided = &ap
	}
	if err := t.generation(e, did); err != nil {
		return err
	}
	if e.Rename != nil {
		if err := t.rename(*e.Rename); err != nil {
			return err
		}
	}
	if o := e.Overrides; o != nil {
		if err := t.overrides(*o, did.Session); err != nil {
			return err
		}
	}
	if e.Place != nil {
		if err := t.setPlace(*e.Place); err != nil {
			return err
		}
	}
	if e.Mark != nil {
		if err := t.putMark(*e.Mark); err != nil {
			return err
		}
	}
	for _, end := range e.Endings {
		if err := t.endInput(end); err != nil {
			return err
		}
	}
	if did.Late, err = t.unpark(e.Unpark); err != nil {
		return err
	}
	if e.AskLink != nil {
		if err := t.askLink(*e.AskLink); err != nil {
			return err
		}
	}
	if e.GiveLink != nil {
		if err := t.giveLink(*e.GiveLink, did); err != nil {
			return err
		}
	}
	if e.Ask == nil {
		return nil
	}
	var asked Accepted
	if err := t.accept(e.Ask, &asked); err != nil {
		return err
	}
	if !asked.Duplicate {
		did.Asked = &asked.Input
	}
	return nil
}

// origin is one of a kind, and empty for what may be done again.
func (e Effect) origin() string {
	switch {
	case e.Fork != nil:
		return e.Fork.Origin
	case e.Create != nil:
		return e.Create.Origin
	}
	return ""
}

// generation is what an effect does to the generations of a key.
func (t *tx) generation(e Effect, did *Did) error {
	switch {
	case e.Fork != nil:
		return t.fork(*e.Fork, did)
	case !e.NewGeneration.IsZero():
		old, err := t.session(e.NewGeneration)
		if err != nil {
			return err
		}
		next, err := t.nextGeneration(e.NewGeneration, old, "")
		did.Session = next.id
		return err
	case e.Create != nil:
		return t.create(*e.Create, did)
	case e.Delete != nil:
		return t.delete(*e.Delete, did)
	}
	return nil
}

// overrides replaces those of a session; next is the generation that the same unit has just made of it.
func (t *tx) overrides(o SetOverrides, next workspace.SessionID) error {
	body, err := json.Marshal(o.Overrides)
	if err != nil {
		return err
	}
	if next != "" {
		o.Session = next
	}
	if o.Was == nil {
		return t.one("set overrides", `UPDATE sessions SET overrides = ? WHERE id = ?`, string(body), string(o.Session))
	}
	was, err := json.Marshal(*o.Was)
	if err != nil {
		return err
	}
	return t.one("set overrides", `UPDATE sessions SET overrides = ? WHERE id = ? AND overrides = ?`, string(body), string(o.Session), string(was))
}
