package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/channels"
	"parley/workspace/lazy"
)

// gone finds, in the lower-case description of a 400, that the peer and not the message is the trouble. Telegram
// publishes no list; these are the Bot API server's own words.
var gone = lazy.Regexp(`chat not found|have no rights|not enough rights|need administrator rights` +
	`|chat_write_forbidden|chat_restricted|chat_admin_required|peer_id_invalid|user_is_blocked` +
	`|user is deactivated|group chat was (deactivated|upgraded)|bot was (kicked|blocked)` +
	`|message thread not found|topic_(closed|deleted)`)

// fail classifies what went wrong with a call and cleans it of the token; nil stays nil.
func (a *api) fail(method string, t *carrier, err error) error {
	if err == nil {
		return nil
	}
	e := &channels.Error{Class: classify(t, err)}
	a.suspect(method, e.Class)
	var said *tgbotapi.Error
	if errors.As(err, &said) {
		e.After = time.Duration(said.RetryAfter) * time.Second
		if said.MigrateToChatID != 0 {
			e.Moved = channels.PeerID(decimal(said.MigrateToChatID))
		}
	}
	e.Err = fmt.Errorf("telegram %s: %w", method, a.clean(t, err))
	return e
}

// clean keeps the chain for errors.Is as long as no link of it shows the token. The URL is the usual place.
func (a *api) clean(t *carrier, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var said *tgbotapi.Error
	if t.status != 0 && !errors.As(err, &said) {
		err = fmt.Errorf("status %d: %w", t.status, err)
	}
	if text := err.Error(); a.redact.Replace(text) != text {
		return errors.New(a.redact.Replace(text))
	}
	return err
}

func classify(t *carrier, err error) channels.Class {
	var said *tgbotapi.Error
	switch {
	case errors.As(err, &said):
		code := said.Code
		if code == 0 { // the SDK leaves it out on uploads
			code = t.status
		}
		return classifyAnswer(code, said)
	case t.status != 0:
		return classifyForeign(t.status)
	case t.way.Unsent():
		return channels.Retry
	}
	return channels.Unknown
}

// classifyAnswer judges a refusal in Telegram's own words.
func classifyAnswer(code int, said *tgbotapi.Error) channels.Class {
	text := strings.ToLower(said.Message)
	switch {
	case said.RetryAfter > 0 || code == http.StatusTooManyRequests:
		return channels.Retry
	case said.MigrateToChatID != 0 || code == http.StatusForbidden:
		return channels.PeerGone
	case code == http.StatusUnauthorized || code == http.StatusNotFound: // 404 is how a wrong token looks
		return channels.Fatal
	case code == http.StatusBadRequest && gone().MatchString(text):
		return channels.PeerGone
	case code == http.StatusConflict:
		return channels.Retry
	case code >= 500: // the server went wrong somewhere on the way: perhaps after it was taken
		return channels.Unknown
	case code >= 400:
		return channels.BadMessage
	}
	return channels.Unknown
}

// classifyForeign judges an answer that is not the Bot API's: a proxy's page, or an answer that was cut.
func classifyForeign(status int) channels.Class {
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return channels.BadMessage
	case status >= 300 && status < 500:
		return channels.Retry // it stood before the Bot API, which answers in JSON
	}
	return channels.Unknown
}

// says tells whether err is a refusal by Telegram that contains one of the words, which are lower case.
func says(err error, words ...string) bool {
	var said *tgbotapi.Error
	return errors.As(err, &said) && containsAny(strings.ToLower(said.Message), words)
}

// codeOf is Telegram's error code, or 0.
func codeOf(err error) int {
	var said *tgbotapi.Error
	if errors.As(err, &said) {
		return said.Code
	}
	return 0
}

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
