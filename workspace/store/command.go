// Commands: a reply with the changes that it makes, as one unit.

package store

import (
	"parley/workspace"
)

// Command is the end of a command: its input's end and its reply, with the changes that it makes, as one unit.
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
	Note func(Did) string
	// Changes are made in this order. A stop comes before the session's next generation (NewGeneration, Fork, Delete),
	// which takes along what still waits; SetOverrides after it, since it follows to the new one; an Arrival comes last and
	// is answered in the session that the others leave. When a Create or Fork among them was made before by the same
	// Origin, none of them is made.
	Changes []Change
}

// Change is one thing that a command commits. Its values stand in the files of their nouns: Stop, StopAll, Verdict, Fork,
// NewGeneration, Create, Delete, Rename, SetOverrides, SetPlace, Mark, Ending, Unpark, AuditRows, AskLink, GiveLink, Arrival.
type Change interface {
	// apply may be called again after a rollback: it changes nothing but the transaction and did.
	apply(t *tx, did *Did) error
}

// original is a Change that is made once for each origin; empty: each time.
type original interface{ origin() string }

// Did is what a command's unit changed.
type Did struct {
	Reply   []workspace.Outbound
	Session workspace.SessionID // of a new generation, or of a session that was made
	Again   bool                // the session had been made before by the same Origin: nothing was done
	Stopped Stopped
	All     []StoppedIn          // of StopAll
	Decided *workspace.Approval  // of Verdict
	Asked   *workspace.Input     // of Arrival; nil: it had been asked before
	Late    []workspace.Outbound // of Unpark
	Joined  workspace.Joined     // of GiveLink
	Told    []workspace.Outbound // what other rooms are told of it

	next workspace.SessionID // the generation that follows the command's own; empty: it stays the newest
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
		if err := t.change(c.Changes, &did); err != nil {
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

func (t *tx) change(list []Change, did *Did) error {
	for _, c := range list {
		if o, ok := c.(original); ok {
			if again, err := t.made(o.origin(), did); again || err != nil {
				return err
			}
		}
	}
	for _, c := range list {
		if err := c.apply(t, did); err != nil {
			return err
		}
	}
	return nil
}

// noteReply keeps a command and its reply in the transcript of a local session: its surfaces read nothing else.
func (t *tx) noteReply(c Command, did Did) error {
	if c.Note == nil || c.Input.SessionID == "" {
		return nil
	}
	session := c.Input.SessionID
	if did.next != "" {
		session = did.next
	}
	_, err := t.appendEntries(session, []workspace.Entry{{InputID: c.Input.ID, Role: workspace.RoleEvent,
		Body: workspace.EntryBody{Type: "command", Content: []workspace.Content{{Kind: workspace.Text, Text: c.Note(did)}}}}})
	return err
}
