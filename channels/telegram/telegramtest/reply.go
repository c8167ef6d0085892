package telegramtest

import (
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"
)

// apiError is a refusal, in the form of https://core.telegram.org/bots/api#making-requests.
type apiError struct {
	code    int // of the body and of HTTP
	text    string
	retry   int   // parameters.retry_after, seconds
	migrate int64 // parameters.migrate_to_chat_id
}

var (
	errNotFound     = &apiError{code: 404, text: "Not Found"}
	errUnauthorized = &apiError{code: 401, text: "Unauthorized"}
	errGone         = &apiError{text: "the client left"} // never written
	errOtherPoller  = &apiError{code: 409, text: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}
	errSetWebhook   = &apiError{code: 409, text: "Conflict: terminated by setWebhook request"}
	errWebhookSet   = &apiError{code: 409, text: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"}
	errNotModified  = badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
)

func badRequest(format string, args ...any) *apiError {
	return &apiError{code: 400, text: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func forbidden(text string) *apiError { return &apiError{code: 403, text: "Forbidden: " + text} }

func tooMany(seconds int) *apiError {
	return &apiError{code: 429, text: "Too Many Requests: retry after " + strconv.Itoa(seconds), retry: seconds}
}

func (e *apiError) append(b []byte) []byte {
	b = append(b, `{"ok":false,"error_code":`...)
	b = strconv.AppendInt(b, int64(e.code), 10)
	b = appendString(append(b, `,"description":`...), e.text)
	switch {
	case e.retry > 0:
		b = strconv.AppendInt(append(b, `,"parameters":{"retry_after":`...), int64(e.retry), 10)
		b = append(b, '}')
	case e.migrate != 0:
		b = strconv.AppendInt(append(b, `,"parameters":{"migrate_to_chat_id":`...), e.migrate, 10)
		b = append(b, '}')
	}
	return append(b, '}')
}

func (s *Server) writeError(w http.ResponseWriter, e *apiError) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retry))
	}
	writeJSON(w, e.code, e.append(nil))
}

func writeJSON(w http.ResponseWriter, code int, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone; it will ask again
}

const hex = "0123456789abcdef"

// appendString appends s as a JSON string. s is valid UTF-8.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

func appendField(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":`...)
	return appendString(b, value)
}

func appendNumber(b []byte, key string, n int64) []byte {
	if n == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

func appendUser(b []byte, u User) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), u.ID, 10)
	b = strconv.AppendBool(append(b, `,"is_bot":`...), u.Bot)
	b = appendString(append(b, `,"first_name":`...), u.First)
	b = appendField(b, "last_name", u.Last)
	b = appendField(b, "username", u.Username)
	return append(b, '}')
}

func appendChat(b []byte, c Chat) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), c.ID, 10)
	b = appendString(append(b, `,"type":`...), string(c.Kind))
	if c.Kind == Private {
		b = appendField(b, "first_name", c.Title)
	} else {
		b = appendField(b, "title", c.Title)
	}
	b = appendField(b, "username", c.Username)
	if c.Forum {
		b = append(b, `,"is_forum":true`...)
	}
	return append(b, '}')
}

func appendEntities(b []byte, key string, all []Entity) []byte {
	if len(all) == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":[`...)
	for i, e := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"type":`...), e.Type)
		b = strconv.AppendInt(append(b, `,"offset":`...), int64(e.Offset), 10)
		b = strconv.AppendInt(append(b, `,"length":`...), int64(e.Length), 10)
		b = appendField(b, "url", e.URL)
		b = appendField(b, "language", e.Language)
		b = appendField(b, "custom_emoji_id", e.Emoji)
		if e.User != nil {
			b = appendUser(append(b, `,"user":`...), *e.User)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// units is the length of s in UTF-16 code units, which is how Telegram counts.
func units(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
