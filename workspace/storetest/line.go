package storetest

import (
	"fmt"
	"testing"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// Chat is a DM on a made-up network, with its session.
type Chat struct {
	Addr   channels.Address
	Key    workspace.Key
	Person workspace.PersonID
}

// NewChat is the n-th chat.
func NewChat(n int) Chat {
	a := channels.Address{Network: "telegram", Account: "42", Kind: channels.DM, Peer: channels.PeerID(fmt.Sprint(1000 + n))}
	return Chat{Addr: a, Person: workspace.PersonID(fmt.Sprintf("p%d", n)),
		Key: workspace.Key{Agent: "assistant", Scope: workspace.ScopeAddress, Network: a.Network, Account: a.Account, Kind: a.Kind, Peer: a.Peer}}
}

// Message is an arrival that waits for a turn.
func (c Chat) Message(s *store.Store, key, text string) store.Arrival {
	return store.Arrival{Room: c.Addr, Key: c.Key, Input: workspace.Input{ID: workspace.InputID(s.IDs().New()), Source: string(c.Addr.Network),
		Account: string(c.Addr.Account), Key: key, Kind: channels.KindMessage, Person: c.Person, Role: workspace.Guest, Agent: "assistant",
		Mode: workspace.ModeTurn, State: workspace.InputQueued, Text: text, Data: workspace.InputData{Message: channels.MessageID(key)},
		Decision: workspace.Decision{Allow: true, Rule: "dm:open"}, Binding: workspace.Binding{Agent: "assistant", Key: c.Key.String(), Rule: "fallback", Fallback: true}}}
}

// Begun is a message whose run begins with it.
func (c Chat) Begun(s *store.Store, key, text string) store.Arrival {
	a := c.Message(s, key, text)
	a.Begin = &store.Begin{Run: c.NewRun(s)}
	return a
}

// NewRun is a run that is not stored yet.
func (c Chat) NewRun(s *store.Store) workspace.Run {
	return workspace.Run{ID: workspace.RunID(s.IDs().New()), Requester: c.Person, Role: workspace.Guest}
}

// Answer ends a run with a text.
func Answer(run workspace.Run, text string, inputs ...workspace.Input) store.Finish {
	f := store.Finish{Run: run, State: workspace.RunCompleted, Inputs: inputs, InputState: workspace.InputAnswered,
		Entries: []workspace.Entry{{RunID: run.ID, Role: workspace.RoleAssistant, Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}}}}
	if run.RoomID != "" {
		f.Answer = &store.NewOutbound{Key: workspace.AnswerKey(run.ID), RoomID: run.RoomID, RunID: run.ID, Kind: workspace.OutAnswer,
			Spans: []store.Span{{To: len(text)}}, Sending: true}
	}
	return f
}

// Notice is an outbound of its own.
func Notice(key string, room workspace.RoomID, text string) store.NewOutbound {
	return store.NewOutbound{Key: key, RoomID: room, Kind: workspace.OutNotice, Text: text, Spans: []store.Span{{To: len(text)}}}
}

// accept journals one arrival that must go well.
func accept(t testing.TB, s *store.Store, a store.Arrival) store.Accepted {
	t.Helper()
	got, err := s.Accept(a)
	if err != nil {
		t.Fatalf("accept %s: %v", a.Input.Key, err)
	}
	return got[0]
}

// finish ends a run that must go well.
func finish(t testing.TB, s *store.Store, f store.Finish) store.Finished {
	t.Helper()
	got, err := s.Finish(f)
	if err != nil {
		t.Fatalf("finish: %v", err)
	}
	return got
}

// barrier returns when everything that was posted before is committed.
func barrier(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.SetSetting("barrier", "x"); err != nil {
		t.Fatal(err)
	}
}

func input(t testing.TB, s *store.Store, id workspace.InputID) workspace.Input {
	t.Helper()
	in, err := s.Input(id)
	if err != nil {
		t.Fatalf("input %s: %v", id, err)
	}
	return in
}
