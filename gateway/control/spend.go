package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"parley/workspace"
	"parley/workspace/clip"
)

// SpendQuery says what is summed. Times are whole days, UTC: From the first, To the one behind the last.
type SpendQuery struct {
	By       string // day, agent, person, model
	From, To time.Time
	Agent    workspace.AgentID // only of these, where they are given
	Person   workspace.PersonID
	Model    string
}

// Spend is what the runs of one day, agent, person or model cost.
type Spend struct {
	Key      string // the day as 2006-01-02, or an id; empty: none is known
	Name     string // of the agent or person
	Runs     int
	Failed   int             // of them
	Unpriced int             // of them, with a model whose price is not known
	Known    float64         // US dollars of those that are priced
	Usage    workspace.Usage // its cost is nil when any is unpriced
}

// Limits of one question.
const (
	spendDays  = 366
	spendChunk = 2000
)

// Spending sums the runs that started within some days.
func (c *Control) Spending(ctx context.Context, call Call, q SpendQuery) (items []Spend, total Spend, err error) {
	if err := c.may(call, "usage.list"); err != nil {
		return nil, Spend{}, err
	}
	if !slices.Contains([]string{"day", "agent", "person", "model"}, q.By) {
		return nil, Spend{}, workspace.Say(workspace.ErrInvalid, "Usage is summed by day, agent, person or model, not by %q.", clip.Runes(q.By, 40))
	}
	if days := q.To.Sub(q.From).Hours() / 24; days <= 0 || days > spendDays {
		return nil, Spend{}, workspace.Say(workspace.ErrInvalid, "From must lie before to, by at most %d days.", spendDays)
	}
	sums := map[string]*Spend{}
	var after workspace.RunID
	for more := true; more; {
		list, last, again, err := c.Store.SpentBetween(q.From, q.To, after, spendChunk)
		if err != nil {
			return nil, Spend{}, err
		}
		for _, sp := range list {
			if q.Agent != "" && q.Agent != sp.Agent || q.Person != "" && q.Person != sp.Person || q.Model != "" && q.Model != sp.Model {
				continue
			}
			key := map[string]string{"day": sp.Started.UTC().Format(time.DateOnly), "agent": string(sp.Agent), "person": string(sp.Person), "model": sp.Model}[q.By]
			if sums[key] == nil {
				sums[key] = &Spend{Key: key}
			}
			sums[key].add(sp.State, sp.Usage)
			total.add(sp.State, sp.Usage)
		}
		after, more = last, again
		if err := ctx.Err(); err != nil {
			return nil, Spend{}, err
		}
	}
	names := map[workspace.PersonID]string{}
	for _, s := range sums {
		switch q.By {
		case "agent":
			a, _ := c.House.Agent(workspace.AgentID(s.Key)) // one that is configured no more has its id for a name
			s.Name = a.Name
		case "person":
			if s.Name, err = c.nameOf(names, workspace.PersonID(s.Key)); err != nil {
				return nil, Spend{}, err
			}
		}
		items = append(items, *s)
	}
	slices.SortFunc(items, func(a, b Spend) int {
		if q.By == "day" {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Known, a.Known), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Key, b.Key))
	})
	return items, total, nil
}

func (s *Spend) add(state workspace.RunState, u workspace.Usage) {
	s.Runs++
	if state == workspace.RunFailed || state == workspace.RunTimeout {
		s.Failed++
	}
	switch {
	case u.CostUSD != nil:
		s.Known += *u.CostUSD
	case u.Calls > 0:
		s.Unpriced++
	}
	s.Usage = s.Usage.Add(u)
}

func (s Spend) tokens() int { return s.Usage.InputTokens + s.Usage.OutputTokens }
