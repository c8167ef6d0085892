// A data directory that is too much to be said by hand.

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

const (
	longTurns  = 2500 // of four entries each: 10,000
	moreChats  = 999  // beside the long one
	chatsDaily = 40
)

// writeLong makes a data directory with a transcript of 10,000 entries and 1,000 sessions, over some weeks.
func writeLong(dir string) (err error) {
	end := time.Now().Add(-time.Hour)
	var now atomic.Int64 // the store's own goroutines look, too
	now.Store(end.UnixMilli())
	s, err := store.Open(context.Background(),
		store.Options{Dir: dir, Now: func() time.Time { return time.UnixMilli(now.Load()) }, BallastBytes: -1, Synchronous: "OFF"})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	for i := range moreChats {
		now.Store(end.Add(-time.Duration(moreChats-i) * 24 * time.Hour / chatsDaily).UnixMilli())
		key := workspace.Key{Agent: "assistant", Scope: workspace.ScopeLocal, Local: fmt.Sprintf("chat-%04d", i)}
		if err := turn(s, key, fmt.Sprintf("Question %d about %s", i, topics[i%len(topics)]), fmt.Sprintf("Answer %d.", i)); err != nil {
			return err
		}
	}
	long := workspace.Key{Agent: "assistant", Scope: workspace.ScopeLocal, Local: "long"}
	for i := range longTurns {
		now.Store(end.Add(-time.Duration(longTurns-i) * time.Minute).UnixMilli())
		if err := turn(s, long, fmt.Sprintf("Message %d: %s?", i+1, topics[i%len(topics)]), longAnswer(i+1)); err != nil {
			return err
		}
	}
	return nil
}

var topics = []string{"a leaking tap", "train times to Bern", "the tax form", "a recipe for lentils", "Go's garbage collector",
	"names for a cat", "rain on Sunday"}

// longAnswer is one of several lengths and forms.
func longAnswer(n int) string {
	switch n % 5 {
	case 0:
		return fmt.Sprintf("Answer %d with code:\n\n```go\nfunc answer() int {\n\treturn %d\n}\n```\n\nThat is all.", n, n)
	case 1:
		return fmt.Sprintf("Answer %d with a list:\n\n- one\n- **two**\n- `three`", n)
	case 2:
		return fmt.Sprintf("Answer %d with a table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", n)
	}
	return fmt.Sprintf("Answer %d in some words that go over more than one line, so that not every answer is as high as the one "+
		"before it and the page has to measure them.", n)
}

// turn is one message of the local owner with its answer, as WebChat and a model would have left it.
func turn(s *store.Store, key workspace.Key, ask, answer string) error {
	run := workspace.Run{ID: workspace.RunID(s.IDs().New()), Requester: "local", Role: workspace.Owner}
	id := s.IDs().New()
	got, err := s.Accept(store.Arrival{
		Input: workspace.Input{ID: workspace.InputID(id), Source: "webchat", Account: "local", Key: id, Kind: channels.KindMessage,
			Person: "local", Role: workspace.Owner,
			Agent: key.Agent, Mode: workspace.ModeTurn, State: workspace.InputQueued, Text: ask,
			Decision: workspace.Decision{Allow: true, Rule: "local"},
			Binding:  workspace.Binding{Agent: key.Agent, Key: key.String(), Rule: "local"}},
		Room: channels.Address{Network: "webchat", Account: "local", Kind: channels.DM, Peer: channels.PeerID(key.String())}, Key: key,
		Begin: &store.Begin{Run: run},
	})
	if err != nil {
		return err
	}
	_, err = s.Finish(store.Finish{Run: got[0].Begun.Run, State: workspace.RunCompleted, Model: "main",
		Inputs: []workspace.Input{got[0].Input}, InputState: workspace.InputAnswered,
		Entries: []workspace.Entry{{RunID: run.ID, Role: workspace.RoleAssistant,
			Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: answer}}}}}})
	return err
}
