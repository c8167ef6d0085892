package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
)

// audit: rows of many writers are one chain, and the reader's pages are it.
func auditChain(t *testing.T, s *store.Store) {
	const each, writers = 5, 8
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for k := range each {
				if err := s.Audit(workspace.AuditRow{Kind: workspace.AuditExecStarted, Actor: "ana", Via: "tg",
					What: map[string]any{"line": fmt.Sprintf("echo %d <&> \u2028 ü \x00", i), "k": k, "list": []string{"a"}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var got []workspace.AuditEntry
	for after := int64(0); ; after = got[len(got)-1].N {
		page, err := s.AuditAfter(after, 7)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, page...); len(page) == 0 {
			break
		}
	}
	newest, err := s.AuditAfter(-1, 3)
	if err != nil || len(got) != each*writers || len(newest) != 3 || newest[2].Hash != got[len(got)-1].Hash || newest[0].N != got[len(got)-3].N {
		t.Fatalf("%d rows, newest %+v, %v", len(got), newest, err)
	}
	back, err := s.AuditBefore(newest[1].N, 2)
	if err != nil || len(back) != 2 || back[0].N != newest[0].N || back[1].N != newest[0].N-1 || back[0].Hash != newest[0].Hash {
		t.Fatalf("before %d: %+v, %v", newest[1].N, back, err)
	}
	for i, e := range got {
		if e.N != int64(i+1) || i > 0 && e.Prev != got[i-1].Hash {
			t.Fatalf("row %d: %+v", i, e)
		}
	}
	r, err := s.VerifyAudit(t.Context(), nil)
	if err != nil || r.Bad != nil || r.Rows != each*writers || len(r.Heads) != 1 || r.Heads[0].Hash != got[len(got)-1].Hash {
		t.Fatalf("%+v %v", r, err)
	}
}

// auditWithAct: a row stands there if, and only if, what it tells of does.
func auditWithAct(t *testing.T, s *store.Store) {
	c := NewChat(1)
	p := workspace.Pairing{ID: "pair1", Channel: "tg", Network: c.Addr.Network, Account: c.Addr.Account, User: "7", State: workspace.PairingOpen}
	a := c.Message(s, "m:1", "hi")
	a.Input.State, a.Pairing, a.Key = workspace.InputRefused, &p, workspace.Key{}
	accept(t, s, a)
	p.State, p.DecidedBy = workspace.PairingApproved, "ana"
	row := workspace.AuditRow{Kind: workspace.AuditPairingDecided, Actor: "ana", What: map[string]any{"long": strings.Repeat("x", 2*workspace.AuditTextMax)}}
	if _, _, err := s.DecidePairing(p, workspace.Member, nil, row); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.DecidePairing(p, workspace.Member, nil, row); !errors.Is(err, workspace.ErrConflict) {
		t.Fatalf("decided twice: %v", err)
	}
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{store.AuditRows{{Kind: workspace.AuditStopped}, {Kind: workspace.AuditRunPaused}}}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.AuditAfter(0, 10)
	if err != nil || len(got) != 3 || len(got[0].Body) > workspace.AuditTextMax+400 || !strings.Contains(string(got[0].Body), "sha256") {
		t.Fatalf("%d rows: %+v, %v", len(got), got, err)
	}
}
