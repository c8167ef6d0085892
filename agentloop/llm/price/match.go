package price

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
)

// model is one line of a provider's file.
type model struct {
	ID     string          `json:"id"`
	Match  match           `json:"match"`
	Prices json.RawMessage `json:"prices"` // []conditional, read only of the one that matches; none: no chat model
}

// conditional rates count from a day, or in some hours of each day. The last whose condition holds counts.
type conditional struct {
	Rates Rates     `json:"rates"`
	From  string    `json:"from"`  // 2026-08-17
	Daily [2]string `json:"daily"` // 00:30:00Z to 16:30:00Z
}

// match is genai-prices' way to name models; all but regex ignore case, and names come in lower case.
type match struct {
	Or         []match `json:"or"`
	And        []match `json:"and"`
	Equals     string  `json:"equals"`
	StartsWith string  `json:"starts_with"`
	EndsWith   string  `json:"ends_with"`
	Contains   string  `json:"contains"`
	Regex      string  `json:"regex"`
	NoRegex    string  `json:"no_regex"` // matches where the expression does not
}

// lookup reads the provider's file and finds the first model that matches.
func lookup(provider, name string) ([]conditional, bool) {
	raw, err := embedded.ReadFile("data/" + provider + ".json")
	if err != nil {
		return nil, false
	}
	var models []model
	if json.Unmarshal(raw, &models) != nil {
		return nil, false
	}
	for _, m := range models {
		if !m.Match.matches(name) {
			continue
		}
		var rates []conditional
		ok := m.Prices != nil && json.Unmarshal(m.Prices, &rates) == nil && len(rates) > 0
		return rates, ok
	}
	return nil, false
}

func (m match) matches(name string) bool {
	switch {
	case m.Or != nil:
		for _, o := range m.Or {
			if o.matches(name) {
				return true
			}
		}
		return false
	case m.And != nil:
		for _, o := range m.And {
			if !o.matches(name) {
				return false
			}
		}
		return true
	case m.Equals != "":
		return name == strings.ToLower(m.Equals)
	case m.StartsWith != "":
		return strings.HasPrefix(name, strings.ToLower(m.StartsWith))
	case m.EndsWith != "":
		return strings.HasSuffix(name, strings.ToLower(m.EndsWith))
	case m.Contains != "":
		return strings.Contains(name, strings.ToLower(m.Contains))
	case m.Regex != "":
		re, err := regexp.Compile(m.Regex)
		return err == nil && re.MatchString(name)
	case m.NoRegex != "":
		re, err := regexp.Compile(m.NoRegex)
		return err == nil && !re.MatchString(name)
	}
	return false
}

// at is the rates that count at a time.
func (p Price) at(now time.Time) Rates {
	now = now.UTC()
	for i := len(p.rates) - 1; i >= 0; i-- {
		if p.rates[i].holds(now) {
			return p.rates[i].Rates
		}
	}
	return p.rates[0].Rates
}

func (c conditional) holds(now time.Time) bool {
	if c.From != "" {
		from, err := time.Parse(time.DateOnly, c.From)
		return err == nil && !now.Before(from)
	}
	if c.Daily[0] == "" {
		return true
	}
	// Both ends are in UTC and of one form, so that they compare as text.
	at, from, to := now.Format("15:04:05Z"), c.Daily[0], c.Daily[1]
	if to < from {
		return at >= from || at < to
	}
	return at >= from && at < to
}
