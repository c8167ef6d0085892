// How a running gateway is.

package cli

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"parley/gateway/client"
	"parley/gateway/control/operator"
)

// GatewayStatus is what /v1/status tells.
type GatewayStatus struct {
	Agent   struct{ ID, Name string } `json:"agent"`
	Session string                    `json:"session"`
	Entries int                       `json:"entries"`
	Running bool                      `json:"running"`
	Waiting int                       `json:"waiting"`
	Health  string                    `json:"health"`
	Reason  string                    `json:"reason"`
	Uptime  int64                     `json:"uptime_seconds"`
	Models  []struct {
		Name    string `json:"name"`
		Model   string `json:"model"`
		Offline bool   `json:"offline"`
		Down    bool   `json:"down"`
		Error   string `json:"last_error"`
	} `json:"models"`
	Channels []operator.Channel `json:"channels"`
	Config   *struct {
		Since   time.Time `json:"since"`
		Problem string    `json:"problem"`
		Waits   []string  `json:"waits"`
	} `json:"config"`
}

// Former says that an error in the file keeps an earlier configuration in force; empty: what the file holds is.
func (s GatewayStatus) Former() string {
	if s.Config == nil || s.Config.Problem == "" {
		return ""
	}
	return fmt.Sprintf("the former configuration is in force since %s: %s", s.Config.Since.Local().Format(time.DateTime), s.Config.Problem)
}

func Status(ctx context.Context, cl *client.Client, session string) (st GatewayStatus, err error) {
	path := "/v1/status"
	if session != "" {
		path += "?session=" + url.QueryEscape(session)
	}
	return st, cl.Get(ctx, path, &st)
}
