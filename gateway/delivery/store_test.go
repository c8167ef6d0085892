package delivery

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// memStore keeps outbound as the store does, by the same table of states.
type memStore struct {
	epoch int64
	deaf  atomic.Int64 // an epoch whose moves are lost: its process was killed

	mu     sync.Mutex
	out    []*workspace.Outbound
	inputs map[workspace.InputID]workspace.InputState
	ends   []store.Ending
	handle map[workspace.InputID]string
	failed error // of EndInputs, once
}

var (
	_ Store      = (*memStore)(nil)
	_ StaleStore = (*memStore)(nil)
)

func newMemStore() *memStore {
	return &memStore{inputs: map[workspace.InputID]workspace.InputState{}, handle: map[workspace.InputID]string{}}
}

func (s *memStore) Epoch() int64 { return s.epoch }

func (s *memStore) Room(id workspace.RoomID) (workspace.Room, error) {
	return workspace.Room{ID: id, Address: channels.Address{Network: "mem", Kind: channels.DM, Peer: channels.PeerID(id)}}, nil
}

func (s *memStore) InputHandle(id workspace.InputID) (string, error) { return s.handle[id], nil }

func (s *memStore) Outbound(list ...store.NewOutbound) (out []workspace.Outbound, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range list {
		if slices.ContainsFunc(s.out, func(o *workspace.Outbound) bool { return o.Key == n.Key }) {
			continue
		}
		o := &workspace.Outbound{ID: workspace.OutboundID("o-" + n.Key), Key: n.Key, RoomID: n.RoomID, N: int64(len(s.out) + 1),
			RunID: n.RunID, InputID: n.InputID, Kind: n.Kind, Text: n.Text, State: workspace.OutFinal, NotAfter: n.NotAfter, OnUnknown: n.OnUnknown, ReplyTo: n.ReplyTo,
			Created: time.Now()}
		if n.Open {
			o.State = workspace.OutOpen
		}
		for i, sp := range n.Spans {
			p := workspace.Part{OutboundID: o.ID, N: i, Token: fmt.Sprintf("%s.%d", o.ID, i), From: sp.From, To: sp.To,
				Blob: sp.Blob, State: workspace.PartReady, Epoch: s.epoch}
			if n.Sending && i == 0 {
				p.State, p.Tries = workspace.PartSending, 1
			}
			o.Parts = append(o.Parts, p)
		}
		s.out = append(s.out, o)
		out = append(out, clone(o))
	}
	return out, nil
}

func clone(o *workspace.Outbound) workspace.Outbound {
	c := *o
	c.Parts = slices.Clone(o.Parts)
	return c
}

// finish gives an open outbound its text.
func (s *memStore) finish(key, text string, spans ...store.Span) workspace.Outbound {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byKey(key)
	o.State, o.Text = workspace.OutFinal, text
	for i := range o.Parts {
		o.Parts[i].From, o.Parts[i].To = 0, 0
		if i < len(spans) {
			o.Parts[i].From, o.Parts[i].To = spans[i].From, spans[i].To
		}
	}
	return clone(o)
}

func (s *memStore) byKey(key string) *workspace.Outbound {
	for _, o := range s.out {
		if o.Key == key {
			return o
		}
	}
	return nil
}

func (s *memStore) OutboundByKey(key string) (workspace.Outbound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.byKey(key); o != nil {
		return clone(o), nil
	}
	return workspace.Outbound{}, workspace.ErrNotFound
}

func (s *memStore) OutboundByID(id workspace.OutboundID) (workspace.Outbound, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.out {
		if o.ID == id {
			return clone(o), nil
		}
	}
	return workspace.Outbound{}, workspace.ErrNotFound
}

// undelivered is what a boot finds.
func (s *memStore) undelivered() (list []workspace.Outbound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.out {
		if slices.ContainsFunc(o.Parts, func(p workspace.Part) bool {
			return p.State != workspace.PartSent && p.State != workspace.PartCancelled && p.State != workspace.PartDead
		}) {
			list = append(list, clone(o))
		}
	}
	return list
}

func (s *memStore) MovePart(moves ...store.Move) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range moves {
		if err := s.move(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *memStore) Receipt(moves ...store.Move) { _ = s.MovePart(moves...) } // a receipt that does not fit is lost there as well

func (s *memStore) move(m store.Move) error {
	if s.deaf.Load() == s.epoch {
		return nil
	}
	for _, o := range s.out {
		if o.ID != m.Part.OutboundID {
			continue
		}
		p := &o.Parts[m.Part.N]
		if !workspace.Parts.Can(p.State, m.To) || p.State == workspace.PartSending && p.Epoch != s.epoch && m.To != workspace.PartUnknown {
			return fmt.Errorf("%s.%d from %s to %s: %w", o.ID, p.N, p.State, m.To, workspace.ErrConflict)
		}
		p.State, p.NextAt, p.Epoch = m.To, m.NextAt, s.epoch
		if m.To == workspace.PartSending {
			p.Tries++
		} else {
			p.Doubt, p.Error = m.Doubt, m.Error
		}
		if m.Remote != "" {
			p.RemoteID = m.Remote
		}
		return nil
	}
	return workspace.ErrConflict
}

func (s *memStore) Dead(m store.Move, notice *store.NewOutbound) ([]workspace.Outbound, error) {
	m.To = workspace.PartDead
	if err := s.MovePart(m); err != nil {
		return nil, err
	}
	s.mu.Lock()
	for _, o := range s.out {
		for i := range o.Parts {
			if p := &o.Parts[i]; o.ID == m.Part.OutboundID && i > m.Part.N && p.State == workspace.PartReady {
				p.State = workspace.PartCancelled
			}
		}
	}
	s.mu.Unlock()
	if notice == nil {
		return nil, nil
	}
	return s.Outbound(*notice)
}

func (s *memStore) EndInputs(ends []store.Ending, notices ...store.NewOutbound) ([]workspace.Outbound, error) {
	s.mu.Lock()
	if err := s.failed; err != nil {
		s.failed = nil
		s.mu.Unlock()
		return nil, err
	}
	s.ends = append(s.ends, ends...)
	s.mu.Unlock()
	return s.Outbound(notices...)
}

// ended is what EndInputs was given so far.
func (s *memStore) ended() []store.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ends)
}

func (s *memStore) Input(id workspace.InputID) (workspace.Input, error) {
	state, ok := s.inputs[id]
	if !ok {
		state = workspace.InputQueued
	}
	return workspace.Input{ID: id, State: state}, nil
}
