// Fakes of networks, asked for over HTTP.

package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/channels/whatsapp/whatsapptest"
)

// fake is one network: the options that lead a channel to it, and what a walk may have it do.
type fake struct {
	options map[string]string
	do      map[string]func(arg string) error
	close   func()
}

// fakes are those that walks asked for, by number.
type fakes struct {
	mu   sync.Mutex
	list map[string]fake
	next int
}

func serveFakes() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fs := &fakes{list: map[string]fake{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{kind}", fs.make)
	mux.HandleFunc("POST /{id}/{act}", fs.act)
	mux.HandleFunc("DELETE /{id}", fs.end)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // whoever started it is gone
		_ = srv.Close()
	}()
	fmt.Printf("http://%s\n", l.Addr())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (fs *fakes) make(w http.ResponseWriter, r *http.Request) {
	kinds := map[string]func() fake{"whatsapp": whatsApp, "slack": slack, "discord": discord, "telegram": telegram}
	kind := kinds[r.PathValue("kind")]
	if kind == nil {
		http.Error(w, "no such network", http.StatusNotFound)
		return
	}
	f := kind()
	fs.mu.Lock()
	fs.next++
	id := strconv.Itoa(fs.next)
	fs.list[id] = f
	fs.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"id": id, "options": f.options})
}

func (fs *fakes) act(w http.ResponseWriter, r *http.Request) {
	fs.mu.Lock()
	act := fs.list[r.PathValue("id")].do[r.PathValue("act")]
	fs.mu.Unlock()
	arg, err := io.ReadAll(r.Body)
	switch {
	case act == nil:
		err = errors.New("it cannot do that")
	case err == nil:
		err = act(string(arg))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

func (fs *fakes) end(_ http.ResponseWriter, r *http.Request) {
	fs.mu.Lock()
	f, ok := fs.list[r.PathValue("id")]
	delete(fs.list, r.PathValue("id"))
	fs.mu.Unlock()
	if ok {
		f.close()
	}
}

// plain is an act that cannot fail and needs nothing.
func plain(f func()) func(string) error {
	return func(string) error { f(); return nil }
}

func whatsApp() fake {
	s := whatsapptest.New(whatsapptest.Options{})
	root := whatsapptest.Root()
	return fake{
		options: map[string]string{"type": "whatsapp", "api_url": s.URL(), "root_key": hex.EncodeToString(root[:])},
		do: map[string]func(string) error{
			"scan": s.Scan, "enter": s.EnterCode, "expire": plain(s.ExpireCodes), "logout": plain(s.LogOut), "replace": plain(s.Replace),
			"down": plain(s.Down), "up": func(string) error { return s.Up() },
			"fail": func(reason string) error {
				s.FailLogin(whatsapptest.Failure{Reason: reason, Code: "101", Expire: "3600"})
				return nil
			},
		},
		close: s.Close,
	}
}

func slack() fake {
	s := slacktest.New(slacktest.Options{NoLimits: true})
	return fake{
		options: map[string]string{"type": "slack", "bot_token": s.Team(0).Token, "app_token": s.App().Token, "api_url": s.APIURL()},
		do: map[string]func(string) error{
			"scopes": func(list string) error {
				var some []string
				err := json.Unmarshal([]byte(list), &some)
				s.SetScopes(0, some...)
				return err
			},
			"revoke": func(code string) error { s.Revoke(0, code); return nil },
			"down":   plain(s.Down), "up": func(string) error { return s.Up() },
		},
		close: s.Close,
	}
}

func discord() fake {
	s := discordtest.New(discordtest.Options{NoLimits: true, NoContent: true})
	return fake{
		options: map[string]string{"type": "discord", "token": s.Token(), "api_url": s.URL()},
		do: map[string]func(string) error{"revoke": plain(s.Revoke), "restore": plain(s.Restore), "down": plain(s.Down),
			"up": func(string) error { return s.Up() }},
		close: s.Close,
	}
}

func telegram() fake {
	s := telegramtest.New(telegramtest.Options{NoLimits: true})
	return fake{
		options: map[string]string{"type": "telegram", "token": s.Token(), "api_url": s.URL()},
		do: map[string]func(string) error{
			"revoke": plain(s.Revoke), "restore": plain(s.Restore), "hang": plain(s.Freeze), "clear": plain(s.ClearFaults),
			"down": plain(s.Down), "up": func(string) error { return s.Up() },
			"write": func(text string) error {
				u := telegramtest.User{ID: 777, First: "Ada"}
				s.AddPrivate(u)
				s.Message(telegramtest.In{Chat: 777, From: u, Text: text})
				return nil
			},
		},
		close: s.Close,
	}
}
