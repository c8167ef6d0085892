package telegram

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/channels"
)

const sentAnswer = `{"ok":true,"result":{"message_id":12345,"from":{"id":4242,"is_bot":true,"first_name":"Parley","username":"ParleyBot"},` +
	`"chat":{"id":7,"first_name":"Ana","type":"private"},"date":1700000000,"text":"a short answer"}}`

// instant answers without a network: what is left is the adapter's own work and net/http's client half.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: int64(len(sentAnswer)), Body: io.NopCloser(strings.NewReader(sentAnswer)), Request: r}, nil
}

func BenchmarkSend(b *testing.B) {
	p := channels.Post{To: dm(), Text: strings.Repeat("a short answer, ", 20)}
	b.Run("adapter", func(b *testing.B) {
		c, _ := newChannel(b, "http://bot.example", &http.Client{Transport: instant{}})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Send(b.Context(), p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		bot := &tgbotapi.BotAPI{Token: testToken, Client: &http.Client{Transport: instant{}}}
		bot.SetAPIEndpoint("http://bot.example/bot%s/%s")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := bot.Send(tgbotapi.NewMessage(7, p.Text)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSendOverHTTP(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, sentAnswer)
	}))
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	defer client.CloseIdleConnections()
	p := channels.Post{To: dm(), Text: strings.Repeat("a short answer, ", 20)}
	b.Run("adapter", func(b *testing.B) {
		c, _ := newChannel(b, srv.URL, client)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Send(b.Context(), p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		bot := &tgbotapi.BotAPI{Token: testToken, Client: client}
		bot.SetAPIEndpoint(srv.URL + "/bot%s/%s")
		b.ReportAllocs()
		for b.Loop() {
			if _, err := bot.Send(tgbotapi.NewMessage(7, p.Text)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRead is the decoding of one answer of 100 updates, per update.
func BenchmarkRead(b *testing.B) {
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"from":{"id":7,"is_bot":false,"first_name":"Ana","last_name":"Ruiz","username":"ana","language_code":"en"},`+
			`"chat":{"id":7,"first_name":"Ana","last_name":"Ruiz","username":"ana","type":"private"},"date":1700000000,"text":"what is the weather like tomorrow in Lisbon, number %d"}}`, i+1, i, i))
	}
	body := []byte(`{"ok":true,"result":[` + strings.Join(all, ",") + `]}`)
	b.Run("adapter", func(b *testing.B) {
		s := testIdentity()
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if n%100 == 0 {
				var out answer[[]json.RawMessage]
				if err := json.Unmarshal(body, &out); err != nil {
					b.Fatal(err)
				}
				for _, raw := range out.Result {
					if got := s.read(raw); !got.keep {
						b.Fatal("lost")
					}
				}
			}
			n++
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if n%100 == 0 {
				var out tgbotapi.APIResponse
				if err := json.Unmarshal(body, &out); err != nil {
					b.Fatal(err)
				}
				var updates []tgbotapi.Update
				if err := json.Unmarshal(out.Result, &updates); err != nil {
					b.Fatal(err)
				}
			}
			n++
		}
	})
}
