package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// Code is a trouble for programs.
type Code string

// Codes.
const (
	BadAddress  Code = "bad_address"  // it is not an address, or the key cannot be one
	KeyRefused  Code = "key_refused"  // 401, 403
	KeyMissing  Code = "key_missing"  // the same, and none was given
	NoCredit    Code = "no_credit"    // the account may spend no more
	Limited     Code = "limited"      // 429
	NotFound    Code = "not_found"    // nothing is at this path
	NoModel     Code = "no_model"     // the server does not have it
	NoModels    Code = "no_models"    // the server has none yet
	NotModels   Code = "not_models"   // it is something else than a model server
	Refused     Code = "refused"      // another 4xx
	Redirects   Code = "redirects"    // which is not followed with a key
	Failing     Code = "failing"      // 5xx
	NoListener  Code = "no_listener"  // nothing listens there
	UnknownHost Code = "unknown_host" // its name cannot be looked up
	NoTLS       Code = "no_tls"       // no connection that can be trusted
	Unreached   Code = "unreached"    // another reason of the network
	TimedOut    Code = "timed_out"
	TooLong     Code = "too_long"
	Wordless    Code = "wordless"    // the model answers nothing
	SecretKept  Code = "secret_kept" // a key that is kept goes to no other address
)

// Trouble is why a server or model cannot be used. It never holds a key.
type Trouble struct {
	Sentence string `json:"sentence"`
	Code     Code   `json:"code"`
	Provider string `json:"provider"` // its id
	Status   int    `json:"status,omitempty"`
}

func (t *Trouble) Error() string { return t.Sentence }

func (t Target) trouble(code Code, status int, format string, args ...any) *Trouble {
	return &Trouble{Sentence: fmt.Sprintf(format, args...), Code: code, Provider: t.Provider.ID, Status: status}
}

// who is the server in a sentence.
func (t Target) who() string {
	if t.Provider.ID == Other {
		return t.host()
	}
	name, _, _ := strings.Cut(t.Provider.Name, " (")
	return name
}

// host is where the server is, with its port where that is not the usual one.
func (t Target) host() string {
	if u, err := url.Parse(Clean(t.BaseURL)); err == nil && u.Host != "" {
		return u.Host
	}
	return "the server"
}

// Failed is what a failed request means; model is empty where none was asked. err is an *llm.Error.
func (t Target) Failed(model string, err error) *Trouble {
	var e *llm.Error
	if !errors.As(err, &e) {
		return t.trouble(Unreached, 0, "%s cannot be used: %v", t.who(), err)
	}
	switch {
	case e.Status != 0:
		return t.answered(model, e)
	case e.Kind == llm.TimedOut, e.Kind == llm.Cancelled && errors.Is(e.Err, context.DeadlineExceeded):
		return t.trouble(TimedOut, 0, "%s does not answer in time%s", t.who(), t.loading(model))
	case e.Kind == llm.Cut:
		return t.trouble(Unreached, 0, "the connection to %s broke off in the middle of its answer", t.who())
	case e.Kind == llm.Malformed:
		return t.trouble(NotModels, 0, "the answer of %s cannot be read: is %s the address of its API?", t.who(), t.host())
	}
	return t.unreached(e)
}

func (t Target) loading(model string) string {
	if model != "" && t.Provider.Local {
		return "; a large model takes a while to load, so try again"
	}
	return ""
}

// answered is a failure that the server told.
func (t Target) answered(model string, e *llm.Error) *Trouble {
	low := strings.ToLower(e.Said)
	switch n := e.Status; {
	case n == 402, strings.Contains(low, "exceeded your current quota"), strings.Contains(low, "credit balance"):
		return t.trouble(NoCredit, n, "the account at %s has no credit (%d)%s", t.who(), n, said(e))
	case n == 401, n == 403, n == 400 && keyWords(low):
		if t.Key == "" {
			return t.trouble(KeyMissing, n, "%s wants a key (%d)%s", t.who(), n, t.keysAt())
		}
		return t.trouble(KeyRefused, n, "%s refuses the key (%d)%s%s", t.who(), n, t.stranger(), said(e))
	case n == 429:
		return t.trouble(Limited, n, "the limit of the account at %s is reached (%d)%s", t.who(), n, said(e))
	case n == 404 && model != "":
		return t.trouble(NoModel, n, "%s has no model `%s` (%d)%s", t.who(), strings.ReplaceAll(model, "`", "'"), n, said(e))
	case n == 404, n == 405:
		return t.trouble(NotFound, n, "%s has no list of models at this address (%d): is it right, and does it end in /v1?", t.who(), n)
	case n >= 500:
		return t.trouble(Failing, n, "%s is in trouble (%d)%s", t.who(), n, said(e))
	case n >= 300 && n < 400:
		to := ""
		var words *wire.ServerError
		if errors.As(e.Err, &words) {
			_, to, _ = strings.Cut(words.Error(), "redirects to ")
		}
		return t.trouble(Redirects, n, "%s redirects to %s (%d), where no key is sent: give the address that is meant", t.who(), to, n)
	}
	return t.trouble(Refused, e.Status, "%s refuses the request (%d)%s", t.who(), e.Status, said(e))
}

// unreached is a failure before there was an answer.
func (t Target) unreached(e *llm.Error) *Trouble {
	var words *wire.ServerError
	if !errors.As(e.Err, &words) {
		return t.trouble(Unreached, 0, "%s is not reached", t.who())
	}
	switch words.Why {
	case wire.NobodyListens:
		if t.Provider.Local {
			return t.trouble(NoListener, 0, "nothing listens at %s: is %s running?", t.host(), t.who())
		}
		return t.trouble(NoListener, 0, "nothing listens at %s: is the server running?", t.host())
	case wire.HostUnknown, wire.NoLookup:
		return t.trouble(UnknownHost, 0, "the name %s cannot be looked up: is it spelled right, and is this machine online?", t.host())
	case wire.Untrusted, wire.NoTLS:
		return t.trouble(NoTLS, 0, "%s has no connection that can be trusted: %s", t.host(), words.Why)
	}
	return t.trouble(Unreached, 0, "%s is not reached: %s", t.host(), words.Why)
}

// keyWords knows how a key is refused with 400.
func keyWords(low string) bool {
	for _, w := range []string{"api key not valid", "api_key_invalid", "invalid api key", "incorrect api key", "invalid_api_key"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

func (t Target) keysAt() string {
	if t.Provider.KeyURL == "" {
		return ""
	}
	return ". Keys are made at " + t.Provider.KeyURL
}

// stranger names the provider that a key looks like, when that is another.
func (t Target) stranger() string {
	for begin, name := range map[string]string{"sk-ant-": "anthropic", "sk-or-": "openrouter", "gsk_": "groq", "AIza": "gemini"} {
		if p, ok := Find(name); ok && p.ID != t.Provider.ID && strings.HasPrefix(t.Key, begin) {
			return "; it looks like one of " + Target{Provider: p}.who()
		}
	}
	return ""
}

// NoneYet is the trouble of a server without any model.
func (t Target) NoneYet() *Trouble {
	if t.Provider.Empty != "" {
		return t.trouble(NoModels, 0, "%s runs, but has no model yet: %s gets one", t.who(), t.Provider.Empty)
	}
	return t.trouble(NoModels, 0, "%s lists no model", t.who())
}

// Silent is the trouble of a model that answers nothing.
func (t Target) Silent(model string) *Trouble {
	return t.trouble(Wordless, 0, "%s answers without a word: is it a model to chat with?", model)
}

// Kept is the refusal to send a key that is kept to an address that it was not given for.
func (t Target) Kept(name string) *Trouble {
	return t.trouble(SecretKept, 0, "the key of %s was given for another address, so it is not sent to this one: give the key again", name)
}
