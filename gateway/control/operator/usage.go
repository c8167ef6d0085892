package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
)

// UsageItem is what the runs of one day, agent, person or model cost.
type UsageItem struct {
	Key          string        `json:"key"`            // the day as 2006-01-02, or an id
	Name         string        `json:"name,omitempty"` // of the agent or person
	Runs         int           `json:"runs"`
	Failed       int           `json:"failed"`
	Unpriced     int           `json:"unpriced"`     // runs with a model whose price is not known
	KnownCostUSD float64       `json:"knownCostUsd"` // of the runs that are priced
	Usage        control.Usage `json:"usage"`

	all workspace.Usage
}

// UsageIn says what is summed, over whole days, UTC.
type UsageIn struct {
	By     string             `query:"by" help:"*what* each item sums" enum:"day,agent,person,model" default:"day"`
	From   string             `query:"from" help:"first *day*, as 2006-01-31; 30 days back when left out" format:"date"`
	To     string             `query:"to" help:"last *day*; today when left out" format:"date"`
	Agent  workspace.AgentID  `query:"agent" help:"only of this agent, by *id*"`
	Person workspace.PersonID `query:"person" help:"only of this person, by *id*"`
	Model  string             `query:"model" help:"only of this model, by *name*"`
}

// UsageSum is a sum over whole days, UTC.
type UsageSum struct {
	By    string      `json:"by"`
	From  string      `json:"from"` // the first day
	To    string      `json:"to"`   // the last one
	Items []UsageItem `json:"items"`
	Next  *string     `json:"next"` // null: a sum has one page
	Total UsageItem   `json:"total"`
}

// Limits of one question.
const (
	spendSpan  = 30 // days, when nothing is said
	spendDays  = 366
	spendChunk = 2000
)

var SumUsage = control.Verb[*Operator, UsageIn, UsageSum]{
	Name: "usage.list", Help: "Sum what runs used and cost, by day, agent, person or model", Rights: rights.Owners,
	Long: "Sum what runs used and cost over whole days, UTC; the last 30 when nothing is said. " +
		"A model without a known price counts as unpriced, not as free.",
	HTTP: "GET /v1/usage", Group: "usage", CLI: "usage",
	Do: func(ctx context.Context, c *Operator, _ control.Call, in UsageIn) (UsageSum, error) {
		to, err := day("to", in.To, c.Now().UTC().Truncate(24*time.Hour))
		if err != nil {
			return UsageSum{}, err
		}
		from, err := day("from", in.From, to.AddDate(0, 0, 1-spendSpan))
		if err != nil {
			return UsageSum{}, err
		}
		sum := UsageSum{By: in.By, From: from.Format(time.DateOnly), To: to.Format(time.DateOnly), Items: []UsageItem{}}
		return c.sumUsage(ctx, in, sum, from, to.AddDate(0, 0, 1))
	},
	Show: func(_ UsageIn, u UsageSum) spec.Shown {
		s := spec.Shown{Heads: []string{strings.ToUpper(u.By), "NAME", "RUNS", "FAILED", "IN", "CACHED", "OUT", "COST", "UNPRICED"}}
		if len(u.Items) == 0 {
			return s
		}
		u.Total.Key = "total"
		for _, x := range append(u.Items, u.Total) {
			cost := ""
			if x.Runs > x.Unpriced {
				cost = fmt.Sprintf("$%.4f", x.KnownCostUSD)
			}
			cached := x.Usage.CacheReadTokens + x.Usage.CacheWriteTokens
			s.Rows = append(s.Rows, []any{x.Key, x.Name, x.Runs, x.Failed, x.Usage.InputTokens, cached,
				x.Usage.OutputTokens, cost, x.Unpriced})
		}
		return s
	},
}

// day reads a day; empty is another one.
func day(name, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return d, workspace.Say(workspace.ErrInvalid, "%s is a day, such as 2026-01-31.", name)
	}
	return d, nil
}

// sumUsage adds the runs that started from one time on and before another.
func (c *Operator) sumUsage(ctx context.Context, in UsageIn, sum UsageSum, from, to time.Time) (UsageSum, error) {
	if days := to.Sub(from).Hours() / 24; days <= 0 || days > spendDays {
		return sum, workspace.Say(workspace.ErrInvalid, "From must be before to, by at most %d days.", spendDays)
	}
	sums := map[string]*UsageItem{}
	var after workspace.RunID
	for more := true; more; {
		list, last, again, err := c.Store.SpentBetween(from, to, after, spendChunk)
		if err != nil {
			return sum, err
		}
		for _, sp := range list {
			if in.Agent != "" && in.Agent != sp.Agent || in.Person != "" && in.Person != sp.Person ||
				in.Model != "" && in.Model != sp.Model {
				continue
			}
			key := map[string]string{"day": sp.Started.UTC().Format(time.DateOnly), "agent": string(sp.Agent), "person": string(sp.Person),
				"model": sp.Model}[in.By]
			if sums[key] == nil {
				sums[key] = &UsageItem{Key: key}
			}
			sums[key].add(sp.State, sp.Usage)
			sum.Total.add(sp.State, sp.Usage)
		}
		after, more = last, again
		if err := ctx.Err(); err != nil {
			return sum, err
		}
	}
	var err error
	names := map[workspace.PersonID]string{}
	for _, s := range sums {
		switch in.By {
		case "agent":
			a, _ := c.Find.Agent(workspace.AgentID(s.Key)) // one that is configured no more has its id for a name
			s.Name = a.Name
		case "person":
			if s.Name, err = c.Find.Name(names, workspace.PersonID(s.Key)); err != nil {
				return sum, err
			}
		}
		sum.Items = append(sum.Items, *s)
	}
	slices.SortFunc(sum.Items, func(a, b UsageItem) int {
		if in.By == "day" {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.KnownCostUSD, a.KnownCostUSD), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Key, b.Key))
	})
	return sum, nil
}

func (s *UsageItem) add(state workspace.RunState, u workspace.Usage) {
	s.Runs++
	if state == workspace.RunFailed || state == workspace.RunTimeout {
		s.Failed++
	}
	switch {
	case u.CostUSD != nil:
		s.KnownCostUSD += *u.CostUSD
	case u.Calls > 0:
		s.Unpriced++
	}
	s.all = s.all.Add(u)
	s.Usage = control.UsageOf(s.all)
}

func (s UsageItem) tokens() int { return s.Usage.InputTokens + s.Usage.OutputTokens }
