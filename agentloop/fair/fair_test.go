package fair_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"parley/agentloop/fair"
	"parley/workspace"
)

func given(t *fair.Ticket) bool { return t.Given() }

func TestOnePersonLeavesPlacesForOthers(t *testing.T) {
	t.Parallel()
	p := fair.New(32)
	held := 0
	for range 100 {
		if p.Try("eve") {
			held++
		}
	}
	if held != 16 || held != fair.Most(32) {
		t.Errorf("one person holds %d of 32, want half", held)
	}
	waits := p.Ask("eve", 1)
	if given(waits) || p.Why(waits) != fair.Share {
		t.Error("and takes more")
	}
	for i := range 16 { // the others have a quarter each at the least
		if who := workspace.PersonID(fmt.Sprint(i / 8)); !p.Try(who) {
			t.Errorf("%s has no place number %d", who, i%8+1)
		}
	}
	if p.Try("ana") {
		t.Error("there are more than 32 places")
	}
	ana := p.Ask("ana", 2)
	if p.Why(ana) != fair.Busy {
		t.Error("it is not said that all places are taken")
	}
	p.Leave("eve")
	if !given(ana) || given(waits) {
		t.Error("who holds half of the places is served before who has none")
	}
	for range 16 {
		p.Leave("eve")
		if given(waits) {
			break
		}
	}
	if !given(waits) {
		t.Error("who waits is forgotten")
	}
}

func TestPlacesAreGivenInOrder(t *testing.T) {
	t.Parallel()
	p := fair.New(1)
	if !p.Try("ana") {
		t.Fatal("no place")
	}
	second, third, first := p.Ask("b", 2), p.Ask("c", 2), p.Ask("d", 1)
	gone := p.Ask("e", 0)
	p.Cancel(gone)
	for i, want := range []*fair.Ticket{first, second, third} {
		p.Leave([]workspace.PersonID{"ana", "d", "b"}[i])
		for _, tk := range []*fair.Ticket{first, second, third}[i+1:] {
			if given(tk) {
				t.Errorf("step %d: served too early", i)
			}
		}
		if !given(want) {
			t.Errorf("step %d: not served", i)
		}
	}
	p.Cancel(third) // it has the place: that is leaving
	if used, total := p.Count(); used != 0 || total != 1 {
		t.Errorf("%d of %d places are taken", used, total)
	}
}

func TestResizeServesWhoWaits(t *testing.T) {
	t.Parallel()
	p := fair.New(1)
	p.Try("a")
	b := p.Ask("b", 1)
	p.Resize(2)
	if !given(b) {
		t.Error("more places and still waiting")
	}
	p.Resize(1)
	p.Leave("a")
	if p.Try("c") {
		t.Error("two at once of one place")
	}
}

// Whatever comes in whatever order: never more than there are, never more of one person than Most, nobody waits while
// there is a place that they may have, and in the end all have had theirs.
func TestAnyMixIsServedWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		total := rapid.IntRange(1, 40).Draw(rt, "total")
		p := fair.New(total)
		people := []workspace.PersonID{"a", "b", "c", "d"}
		var waiting, has []*fair.Ticket
		who := map[*fair.Ticket]workspace.PersonID{}
		sort := func() {
			rest := waiting[:0:0]
			for _, tk := range waiting {
				if given(tk) {
					has = append(has, tk)
				} else {
					rest = append(rest, tk)
				}
			}
			waiting = rest
			held := map[workspace.PersonID]int{}
			for _, tk := range has {
				held[who[tk]]++
			}
			if len(has) > total {
				rt.Fatalf("%d of %d places", len(has), total)
			}
			for person, n := range held {
				if n > fair.Most(total) {
					rt.Fatalf("%s holds %d of %d", person, n, total)
				}
			}
			for _, tk := range waiting {
				if len(has) < total && held[who[tk]] < max(4, total/4) {
					rt.Fatalf("%s waits with %d places of %d free", who[tk], total-len(has), total)
				}
			}
		}
		for i, act := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 200).Draw(rt, "acts") {
			switch {
			case act < 6:
				person := people[act%len(people)]
				tk := p.Ask(person, int64(i%7))
				who[tk] = person
				waiting = append(waiting, tk)
			case act < 9 && len(has) > 0:
				tk := has[i%len(has)]
				has = remove(has, tk)
				p.Leave(who[tk])
			case len(waiting) > 0:
				tk := waiting[i%len(waiting)]
				waiting = remove(waiting, tk)
				p.Cancel(tk)
			}
			sort()
		}
		for len(has) > 0 {
			tk := has[0]
			has = remove(has, tk)
			p.Leave(who[tk])
			sort()
		}
		if used, _ := p.Count(); used != 0 || len(waiting) != 0 {
			rt.Fatalf("%d places are taken and %d wait when all have left", used, len(waiting))
		}
	})
}

func remove(list []*fair.Ticket, gone *fair.Ticket) []*fair.Ticket {
	var out []*fair.Ticket
	for _, tk := range list {
		if tk != gone {
			out = append(out, tk)
		}
	}
	return out
}
