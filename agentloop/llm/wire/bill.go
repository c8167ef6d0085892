package wire

import (
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// Bill completes the response of one call that began at start: who answered, how long it took, and what it cost where
// price knows. A call without any token counted stays unpriced, since nothing is known of it; a nil price knows nothing.
func Bill(resp llm.Response, name string, start time.Time, price func(workspace.Usage) (usd float64, ok bool)) llm.Response {
	resp.Model = name
	resp.Usage.Calls = 1
	resp.Usage.DurationMS = time.Since(start).Milliseconds()
	if u := resp.Usage; price != nil && u.InputTokens+u.OutputTokens+u.CacheReadTokens+u.CacheWriteTokens > 0 {
		if usd, ok := price(u); ok {
			resp.Usage.CostUSD = &usd
		}
	}
	return resp
}
