package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxUpload is the size of a file that a bot may send, in bytes (https://core.telegram.org/bots/api#sending-files).
const maxUpload = 50 << 20

// call is one request with its parameters and the answer that is being written.
type call struct {
	s     *Server
	ctx   context.Context
	kv    []pair
	files []upload
	out   []byte
}

type pair struct{ key, value string }

type upload struct {
	field, name, mime string
	data              []byte
}

func (c *call) lookup(key string) (string, bool) {
	for i := range c.kv {
		if c.kv[i].key == key {
			return c.kv[i].value, true
		}
	}
	return "", false
}

func (c *call) get(key string) string {
	v, _ := c.lookup(key)
	return v
}

func (c *call) int(key string) int64 {
	n, err := strconv.ParseInt(c.get(key), 10, 64)
	if err != nil {
		return 0 // Telegram reads what is not a number as absent
	}
	return n
}

func (c *call) bool(key string) bool {
	switch strings.ToLower(c.get(key)) {
	case "true", "yes", "1":
		return true
	}
	return false
}

// read takes the parameters from the query, a form, JSON or multipart body.
func (c *call) read(r *http.Request) *apiError {
	if r.URL.RawQuery != "" {
		c.form(r.URL.RawQuery)
	}
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	kind := r.Header.Get("Content-Type")
	if kind == "application/x-www-form-urlencoded" || kind == "application/json" {
		return c.readBody(r, kind) // no parameters to parse: the hot path
	}
	kind, args, err := mime.ParseMediaType(kind)
	if err == nil && kind == "multipart/form-data" {
		return c.multipart(multipart.NewReader(r.Body, args["boundary"]))
	}
	return c.readBody(r, kind)
}

func (c *call) readBody(r *http.Request, kind string) *apiError {
	var body []byte
	var err error
	if r.ContentLength > 0 && r.ContentLength <= maxUpload {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(io.LimitReader(r.Body, maxUpload))
	}
	if err != nil {
		return errGone
	}
	if kind == "application/json" {
		return c.json(body)
	}
	c.form(string(body))
	return c.checkUTF8()
}

func (c *call) form(body string) {
	for body != "" {
		var item string
		item, body, _ = strings.Cut(body, "&")
		key, value, _ := strings.Cut(item, "=")
		key, err := url.QueryUnescape(key)
		if err != nil || key == "" {
			continue
		}
		if value, err = url.QueryUnescape(value); err == nil {
			c.kv = append(c.kv, pair{key, value})
		}
	}
}

func (c *call) json(body []byte) *apiError {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return badRequest("can't parse JSON object")
	}
	for key, raw := range fields {
		value := string(raw)
		if strings.HasPrefix(value, `"`) {
			var text string
			if json.Unmarshal(raw, &text) == nil {
				value = text
			}
		}
		if value != "null" {
			c.kv = append(c.kv, pair{key, value})
		}
	}
	return c.checkUTF8()
}

func (c *call) multipart(mr *multipart.Reader) *apiError {
	for {
		part, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			return c.checkUTF8()
		}
		if err != nil {
			return errGone
		}
		data, err := io.ReadAll(io.LimitReader(part, maxUpload+1))
		if err != nil {
			return errGone
		}
		if len(data) > maxUpload {
			return &apiError{code: http.StatusRequestEntityTooLarge, text: "Request Entity Too Large"}
		}
		if part.FileName() == "" {
			c.kv = append(c.kv, pair{part.FormName(), string(data)})
			continue
		}
		c.files = append(c.files, upload{part.FormName(), part.FileName(), part.Header.Get("Content-Type"), data})
	}
}

func (c *call) checkUTF8() *apiError {
	for _, p := range c.kv {
		if !utf8.ValidString(p.value) {
			return badRequest("strings must be encoded in UTF-8")
		}
	}
	return nil
}

func (c *call) upload(field string) (upload, bool) {
	for _, f := range c.files {
		if f.field == field {
			return f, true
		}
	}
	return upload{}, false
}

// yes answers true.
func (c *call) yes() *apiError {
	c.out = append(c.out, "true"...)
	return nil
}
