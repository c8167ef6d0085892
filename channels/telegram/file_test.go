package telegram

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"parley/channels"
)

// fileServer serves one file of the said size (0: does not say) with the given bytes.
func fileServer(t *testing.T, size int64, path string, data []byte, fetched *atomic.Int64) *Channel {
	t.Helper()
	return overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/bot" + testToken + "/getFile":
			fmt.Fprintf(w, `{"ok":true,"result":{"file_id":"f","file_size":%d,"file_path":%q}}`, size, path)
		case "/file/bot" + testToken + "/" + path:
			fetched.Add(1)
			w.(http.Flusher).Flush() // no Content-Length
			_, _ = w.Write(data)
		default:
			t.Errorf("asked for %s", r.URL.Path)
			http.NotFound(w, r)
		}
	}))
}

func TestT18_AttachmentIsOpenedUnderItsCaps(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	n := int64(len(data))
	for name, c := range map[string]struct {
		said, server int64
		path         string
		data         []byte
		tooLarge     bool
		fetched      int64
	}{
		"as announced":                 {n, n, "documents/a b.pdf", data, false, 1},
		"no size known":                {0, 0, "documents/f.pdf", data, false, 1},
		"server knows it is larger":    {10, n, "documents/f.pdf", data, true, 0},
		"more comes than was said":     {n - 1, n - 1, "documents/f.pdf", data, true, 1},
		"more than any bot may have":   {maxDownload + 1, 1, "documents/f.pdf", data, true, 0},
		"server says more than allows": {0, maxDownload + 1, "documents/f.pdf", data, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fetched atomic.Int64
			ch := fileServer(t, c.server, c.path, c.data, &fetched)
			rc, err := ch.Open(t.Context(), channels.Attachment{ID: "f", Size: c.said})
			var got []byte
			if err == nil {
				got, err = io.ReadAll(rc)
				if cerr := rc.Close(); cerr != nil {
					t.Error(cerr)
				}
			}
			if errors.Is(err, channels.ErrTooLarge) != c.tooLarge || (err != nil) != c.tooLarge {
				t.Fatalf("error %v", err)
			}
			if c.tooLarge && int64(len(got)) > max(c.said, 0) {
				t.Errorf("%d bytes were given away", len(got))
			}
			if !c.tooLarge && !bytes.Equal(got, c.data) {
				t.Errorf("%d bytes, want %d", len(got), len(c.data))
			}
			if fetched.Load() != c.fetched {
				t.Errorf("fetched %d times, want %d", fetched.Load(), c.fetched)
			}
		})
	}
}

func TestT18_PathsThatLeadElsewhereAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/var/lib/telegram-bot-api/f", "../getMe", "a/../../f"} {
		var fetched atomic.Int64
		ch := fileServer(t, 3, path, []byte("abc"), &fetched)
		if _, err := ch.Open(t.Context(), channels.Attachment{ID: "f", Size: 3}); err == nil || fetched.Load() != 0 {
			t.Errorf("path %q: %v, fetched %d", path, err, fetched.Load())
		}
	}
}

func TestFileThatTelegramKeepsBackIsTooLarge(t *testing.T) {
	t.Parallel()
	ch := answering(t, 400, refusal(400, "Bad Request: file is too big", ""))
	if _, err := ch.Open(t.Context(), channels.Attachment{ID: "f"}); !errors.Is(err, channels.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestCheckSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newScript()
	c, _ := s.channel(t)
	for _, f := range c.Check(t.Context()) {
		if !f.OK {
			t.Errorf("%+v", f)
		}
	}
	s.on("getMe", ok(`{"id":4242,"username":"b","can_join_groups":false,"can_read_all_group_messages":false}`))
	s.on("getWebhookInfo", ok(`{"url":"https://x.example","pending_update_count":2}`))
	text := ""
	for _, f := range c.Check(t.Context()) {
		text += fmt.Sprintln(f.OK, f.What, f.Hint)
	}
	for _, want := range []string{"/setprivacy", "/setjoingroups", "false a webhook is set"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	s.on("getMe", refuse(401, "Unauthorized"))
	if found := c.Check(t.Context()); len(found) != 1 || found[0].OK || !strings.Contains(found[0].Hint, "@BotFather") {
		t.Errorf("%+v", found)
	}
	s.on("getMe", refuse(500, "Internal Server Error"))
	if found := c.Check(t.Context()); len(found) != 1 || found[0].OK || !strings.Contains(found[0].Hint, "network") {
		t.Errorf("%+v", found)
	}
}
