package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// modelCommand starts a server that speaks OpenAI's format for one script: its address is $MODEL, its key right-key.
func modelCommand(ts *testscript.TestScript, _ bool, _ []string) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"text-embedding-1"},{"id":"first"},{"id":"second"}]}`)
		case r.URL.Path != "/v1/chat/completions":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer right-key":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"no such key"}}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Hello from the test."},"finish_reason":"stop"}]}`, "\n\n",
				`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}`, "\n\ndata: [DONE]\n\n")
		}
	}))
	ts.Defer(srv.Close)
	ts.Setenv("MODEL", srv.URL)
}
