// Command echobot is the bare bot that benchmarks compare with: the same Telegram SDK as the gateway's, one goroutine per
// chat so that a chat's messages keep their order, one model call per message, nothing stored.
//
// It is no example of a good bot: GetUpdatesChan confirms messages before they are answered, so a crash loses them.
//
// Goroutines: one per chat that ever wrote, and the SDK's poller; they end with the process.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// backlog is how many messages of one chat wait before the poller does.
const backlog = 256

type bot struct {
	api   *tgbotapi.BotAPI
	http  *http.Client
	llm   string // URL of chat/completions
	model string
}

func main() {
	var o options
	flag.StringVar(&o.api, "api", "https://api.telegram.org", "base `URL` of the Bot API")
	flag.StringVar(&o.token, "token", os.Getenv("TELEGRAM_TOKEN"), "bot token; default $TELEGRAM_TOKEN")
	flag.StringVar(&o.llm, "llm", "", "base `URL` of an OpenAI-style model server, with its /v1")
	flag.StringVar(&o.model, "model", "echo", "model `name` to ask for")
	flag.BoolVar(&o.pooled, "pooled", false, "use one pooled HTTP client instead of the default one")
	flag.Parse()
	if o.token == "" || o.llm == "" {
		fmt.Fprintln(os.Stderr, "echobot: -token and -llm are needed")
		os.Exit(2)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	if err := run(o, stop); err != nil {
		slog.Error("echobot ended", "err", err)
		os.Exit(1)
	}
}

type options struct {
	api, token, llm, model string
	pooled                 bool
}

// client is what the SDK would use, or one that keeps enough idle connections for every chat.
func client(pooled bool) *http.Client {
	if !pooled {
		return &http.Client{}
	}
	return &http.Client{Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 512}}
}

// run polls and answers until stop.
func run(o options, stop <-chan os.Signal) error {
	c := client(o.pooled)
	api, err := tgbotapi.NewBotAPIWithClient(o.token, o.api+"/bot%s/%s", c)
	if err != nil {
		return errors.New("the Bot API does not take the token") // the SDK's error holds it
	}
	b := &bot{api: api, http: c, llm: o.llm + "/chat/completions", model: o.model}
	updates := api.GetUpdatesChan(tgbotapi.UpdateConfig{Timeout: 50})
	defer api.StopReceivingUpdates()
	b.serve(updates, stop)
	return nil
}

// serve gives each chat its goroutine, until stop.
func (b *bot) serve(updates <-chan tgbotapi.Update, stop <-chan os.Signal) {
	chats := map[int64]chan *tgbotapi.Message{}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() {
		for _, c := range chats {
			close(c)
		}
	}()
	for {
		select {
		case <-stop:
			return
		case u := <-updates:
			if u.Message == nil || u.Message.Text == "" {
				continue
			}
			c := chats[u.Message.Chat.ID]
			if c == nil {
				c = make(chan *tgbotapi.Message, backlog)
				chats[u.Message.Chat.ID] = c
				wg.Go(func() {
					for m := range c {
						b.answer(m)
					}
				})
			}
			c <- u.Message
		}
	}
}

func (b *bot) answer(m *tgbotapi.Message) {
	text, err := b.ask(m.Text)
	if err != nil {
		slog.Error("model", "err", err)
		return
	}
	if _, err := b.api.Send(tgbotapi.NewMessage(m.Chat.ID, text)); err != nil {
		slog.Error("send to chat", "peer", m.Chat.ID) // the error holds the token
	}
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (b *bot) ask(text string) (string, error) {
	body, err := json.Marshal(struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
	}{b.model, []message{{"user", text}}})
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	resp, err := b.http.Post(b.llm, "application/json", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("ask the model: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	var answer struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || len(answer.Choices) == 0 {
		return "", fmt.Errorf("HTTP %d without an answer", resp.StatusCode)
	}
	return answer.Choices[0].Message.Content, nil
}
