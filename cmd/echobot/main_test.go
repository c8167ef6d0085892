package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
)

// TestAnswersInTheOrderOfAChat: ten chats write ten messages each, and each chat sees its answers in order.
func TestAnswersInTheOrderOfAChat(t *testing.T) {
	t.Parallel()
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprint("pooled ", pooled), func(t *testing.T) {
			t.Parallel()
			llm := httptest.NewServer(http.HandlerFunc(echo))
			defer llm.Close()
			s := telegramtest.Start(t, telegramtest.Options{NoLimits: true})
			const chats, each = 10, 10
			for i := range int64(chats) {
				u := telegramtest.User{ID: 1 + i, First: "P"}
				s.AddPrivate(u)
				for n := range each {
					s.Message(telegramtest.In{Chat: u.ID, From: u, Text: fmt.Sprint(n)})
				}
			}
			stop := make(chan os.Signal)
			done := make(chan error, 1)
			o := options{api: s.URL(), token: s.Token(), llm: llm.URL + "/v1", model: "echo", pooled: pooled}
			go func() { done <- run(o, stop) }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for i := range int64(chats) {
				sent, err := s.WaitSent(ctx, 1+i, each)
				if err != nil {
					t.Fatal(err)
				}
				for n, m := range sent {
					if m.Text != fmt.Sprint("you said ", n) {
						t.Errorf("chat %d, answer %d: %q", 1+i, n, m.Text)
					}
				}
			}
			close(stop)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	var q struct{ Messages []message }
	if r.URL.Path != "/v1/chat/completions" || json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Messages) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message{"assistant", "you said " + q.Messages[0].Content}}}})
}
