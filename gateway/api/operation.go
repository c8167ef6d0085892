package api

import (
	"parley/gateway/control"
	"parley/gateway/spec"
)

// operation is what openapi.json says of an endpoint beside its path. Types are given by a zero value.
type operation struct {
	group   string
	summary string
	query   string      // names of its parameters, as in parameters, separated by blanks
	body    any         // what is sent; nil: nothing
	good    map[int]any // what good answers hold, by status; nil: nothing
	media   string      // of a good answer; empty: application/json
}

type (
	emptyRequest struct{}
	codeRequest  struct {
		Code string `json:"code"` // from the link that the gateway prints
	}
)

func one(status int, v any) map[int]any { return map[int]any{status: v} }

const (
	sseMedia = "text/event-stream"
	anyMedia = "*/*"
)

// rawBody is a file as it is.
type rawBody struct{}

// operations are by the pattern of their route. A test holds them and the routes together.
func operations() map[string]operation {
	all := map[string]operation{}
	for _, some := range []map[string]operation{talk(), sessionOperations(), gatewayOperations(), channelOperations(), pageOperations(), approvalOperations(), verbOperations()} {
		for pattern, op := range some {
			all[pattern] = op
		}
	}
	return all
}

func talk() map[string]operation {
	return map[string]operation{
		"POST /v1/messages":                     {"messages", "Say something", "", messageRequest{}, map[int]any{200: runView{}, 202: accepted{}}, ""},
		"GET /v1/runs/{id}":                     {"runs", "Read a run: why it was, what it did and when", "", nil, one(200, runDetail{}), ""},
		"GET /v1/runs/{id}/events":              {"runs", "Follow a run to its end", "after", nil, one(200, event{}), sseMedia},
		"GET /v1/runs/{id}/log":                 {"runs", "Read what happened in a run, a line a piece", "offset limit", nil, one(200, spec.List[logLine]{}), ""},
		"GET /v1/runs/{id}/steps/{call}/output": {"runs", "Read all that a command wrote, where its result holds only the beginning and the end", "", nil, map[int]any{200: rawBody{}, 206: rawBody{}}, anyMedia},
	}
}

func sessionOperations() map[string]operation {
	return map[string]operation{
		"GET /v1/sessions/{key}/files":   {"sessions", "Say what fills the work folder of a session", "path=inside", nil, one(200, control.Files{}), ""},
		clearPattern:                     {"sessions", "Remove a file, or a folder with all that is in it, from the work folder of a session", "path folder", emptyRequest{}, one(200, control.FilesRemoved{}), ""},
		"GET /v1/sessions/{key}/entries": {"sessions", "List stored events of a session", "after before session_id limit", nil, one(200, spec.List[event]{}), ""},
		"GET /v1/sessions/{key}/events":  {"sessions", "Follow a session", "after session_id", nil, one(200, event{}), sseMedia},
	}
}

func gatewayOperations() map[string]operation {
	return map[string]operation{
		"GET /healthz":                        {"gateway", "Say that the process serves", "", nil, one(200, control.Done{}), ""},
		"GET /readyz":                         {"gateway", "Say whether messages are taken and can be answered", "", nil, one(200, control.Done{}), ""},
		"GET /metrics":                        {"gateway", "Counters as Prometheus text", "", nil, one(200, ""), "text/plain"},
		"GET /openapi.json":                   {"gateway", "This document", "", nil, one(200, map[string]any{}), ""},
		"GET /v1/status":                      {"gateway", "Say how a session and the gateway behind it are", "session", nil, one(200, statusView{}), ""},
		"POST /v1/agents/{id}/policy/explain": {"agents", "Say what tool policy would do with a call", "", policyRequest{}, one(200, control.PolicyExplained{}), ""},
		"GET /v1/commands":                    {"messages", "List the slash commands that the caller may use", "", nil, one(200, spec.List[Command]{}), ""},
		"POST /v1/routes/explain":             {"routes", "Say what gate and routes would do with a message", "", probeRequest{}, one(200, control.Explained{}), ""},
		"GET /v1/logs":                        {"gateway", "List the newest lines of the daemon's log", "level limit after", nil, one(200, spec.List[logItem]{}), ""},
		"GET /v1/logs/events":                 {"gateway", "Follow the daemon's log", "level after", nil, one(200, logItem{}), sseMedia},
		"POST /v1/backup":                     {"gateway", "Download the data directory", "", emptyRequest{}, one(200, ""), "application/gzip"},
	}
}

func channelOperations() map[string]operation {
	return map[string]operation{
		"GET /v1/channels/{name}/login": {"channels", "Wait for the next step of a login, at most 25 seconds", "after=step", nil, one(200, control.Login{}), ""},
	}
}

func pageOperations() map[string]operation {
	return map[string]operation{
		"POST /v1/sign-in":       {"page", "Exchange a one-time code for a cookie", "", codeRequest{}, one(204, nil), ""},
		"POST /v1/sign-in/codes": {"page", "Make a way in for one browser", "", emptyRequest{}, one(201, codeView{}), ""},
		"POST /v1/sign-out":      {"page", "End the sign-in that asks", "", emptyRequest{}, one(204, nil), ""},
		"GET /v1/me":             {"page", "Say who asks", "", nil, one(200, meView{}), ""},
		"POST /v1/files":         {"page", "Upload a file that a message may carry", "name", rawBody{}, one(201, fileView{}), ""},
		"GET /v1/files/{ref}":    {"page", "Fetch a file", "name", nil, map[int]any{200: rawBody{}, 206: rawBody{}}, anyMedia},
		"GET /v1/live":           {"page", "The live line, a WebSocket", "", nil, one(101, nil), ""},
	}
}
