package api

import (
	"net/http"
	"time"

	"parley/gateway/control"
	"parley/workspace"
)

// usageItem is what the runs of one day, agent, person or model cost.
type usageItem struct {
	Key          string  `json:"key"`            // the day as 2006-01-02, or an id
	Name         string  `json:"name,omitempty"` // of the agent or person
	Runs         int     `json:"runs"`
	Failed       int     `json:"failed"`
	Unpriced     int     `json:"unpriced"`     // runs with a model whose price is not known
	KnownCostUSD float64 `json:"knownCostUsd"` // of the runs that are priced
	Usage        usage   `json:"usage"`
}

func spendOf(s control.Spend) usageItem {
	return usageItem{s.Key, s.Name, s.Runs, s.Failed, s.Unpriced, s.Known, usageOf(s.Usage)}
}

// usageView is a sum over whole days, UTC.
type usageView struct {
	By    string      `json:"by"`
	From  string      `json:"from"` // the first day
	To    string      `json:"to"`   // the last one
	Items []usageItem `json:"items"`
	Next  *string     `json:"next"` // null: a sum has one page
	Total usageItem   `json:"total"`
}

// usageSpan is how many days are summed when nothing is said.
const usageSpan = 30

func (s *server) usage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	today := s.opt.Now().UTC().Truncate(24 * time.Hour)
	to, err := dayOf(r, "to", today)
	if err != nil {
		return err
	}
	from, err := dayOf(r, "from", to.AddDate(0, 0, 1-usageSpan))
	if err != nil {
		return err
	}
	by := q.Get("by")
	if by == "" {
		by = "day"
	}
	items, total, err := s.opt.Control.Spending(r.Context(), s.call(r), control.SpendQuery{By: by, From: from, To: to.AddDate(0, 0, 1),
		Agent: workspace.AgentID(q.Get("agent")), Person: workspace.PersonID(q.Get("person")), Model: q.Get("model")})
	if err != nil {
		return err
	}
	v := usageView{By: by, From: from.Format(time.DateOnly), To: to.Format(time.DateOnly), Items: []usageItem{}, Total: spendOf(total)}
	for _, it := range items {
		v.Items = append(v.Items, spendOf(it))
	}
	reply(w, http.StatusOK, v)
	return nil
}

// dayOf reads a query parameter that is a day.
func dayOf(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, fault(http.StatusBadRequest, "invalid", name+" is a day, such as 2026-01-31.")
	}
	return day, nil
}
