package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// List asks the server which models it has (GET /models), for discovery and for doctor. Of o it uses BaseURL,
// APIKey and HTTP. It ends with ctx; the errors are *llm.Error, or say which option is wrong.
func List(ctx context.Context, o Options) ([]string, error) {
	if o.HTTP == nil {
		return nil, errors.New("no http client")
	}
	u, err := wire.ParseBase(o.BaseURL, o.APIKey, baseForm)
	if err != nil {
		return nil, err
	}
	c := &wire.Client{HTTP: wire.Bare(o.HTTP), Key: o.APIKey, Refused: refused}
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("models").String(), nil)
	if err != nil {
		return nil, errors.New("base_url cannot be used")
	}
	if o.APIKey != "" {
		call.Header.Set("Authorization", "Bearer "+o.APIKey)
	}
	resp, err := c.HTTP.Do(call)
	if err != nil {
		return nil, wire.Finish(ctx, o.Name, c.Unreached(nil, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, wire.Finish(ctx, o.Name, c.Failed(resp))
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&list); err != nil {
		return nil, wire.Finish(ctx, o.Name, &llm.Error{Kind: llm.Malformed, Err: c.Said(err.Error())})
	}
	names := make([]string, len(list.Data))
	for i, d := range list.Data {
		names[i] = d.ID
	}
	return names, nil
}
