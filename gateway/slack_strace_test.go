package gateway_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestR01_SlackAckFollowsFsync looks at the system calls: between the read of an envelope with somebody's message and the
// write of its acknowledgement, the log of the database is synced.
func TestR01_SlackAckFollowsFsync(t *testing.T) {
	t.Parallel()
	needStrace(t)
	w := newSlackWorld(t)
	for _, a := range w.trace(realProgram(t, w.config())) {
		if !a.synced {
			t.Errorf("%s was acknowledged and not synced since it came", a.what)
		}
	}
}

// TestR01_SlackAckCheckFailsWithoutFsync proves that the look above sees what it looks for.
func TestR01_SlackAckCheckFailsWithoutFsync(t *testing.T) {
	t.Parallel()
	needStrace(t)
	w := newSlackWorld(t)
	p := testProgram(t, w.config())
	p.env = append(p.env, childSync+"=OFF")
	acks, missed := w.trace(p), 0
	for _, a := range acks {
		if !a.synced {
			missed++
		}
	}
	t.Logf("%d of %d acknowledgements without a sync", missed, len(acks))
	if missed < len(acks)*9/10 {
		t.Errorf("only %d of %d acknowledgements were found to lack a sync, with synchronous=OFF", missed, len(acks))
	}
}

// trace runs a daemon under load and returns how it acknowledged what people wrote.
func (w *slackWorld) trace(p program) []ack {
	w.t.Helper()
	file := filepath.Join(w.dir, "trace")
	w.d = traced(p, file).start(w.t, w.log, func() {})
	for n := 1; n <= 5; n++ {
		w.say(n)
		w.wait(1)
	}
	w.settled()
	acks := readWire(w.t, file, &socketReader{came: map[string]int{}, tail: map[string]string{}})
	w.t.Logf("acknowledged in the trace: %d of %d messages", len(acks), len(w.said))
	if len(acks) < len(w.said)*9/10 {
		w.t.Errorf("the trace shows %d of %d messages acknowledged", len(acks), len(w.said))
	}
	return acks
}

// socketReader follows Socket Mode: frames that come are text, those that go out are masked (RFC 6455, section 5.3).
type socketReader struct {
	came map[string]int    // when an envelope was read, by its id
	tail map[string]string // what was read last on a connection: an envelope may be cut
}

var tracedEnvelope = regexp.MustCompile(`^env-[A-Za-z0-9]+`)

// got notes envelopes with a message of a person: only those are journalled.
func (s *socketReader) got(r *reader, p pending, data string) {
	const name = `envelope_id\":\"`
	data = s.tail[p.fd] + data
	if s.tail[p.fd] = data[max(0, len(data)-len(name)):]; strings.Contains(data, name) {
		s.tail[p.fd] = data[strings.LastIndex(data, name):]
	}
	parts := strings.Split(data, name)
	for _, part := range parts[1:] {
		if id := tracedEnvelope.FindString(part); id != "" && strings.Contains(part, "client_msg_id") {
			if _, known := s.came[id]; !known {
				s.came[id] = r.line
			}
		}
	}
}

func (s *socketReader) wrote(r *reader, p pending) {
	raw := unescaped(quoted(p.data))
	if len(raw) < 6 || raw[0] != 0x81 || raw[1]&0x80 == 0 || int(raw[1]&0x7f) != len(raw)-6 {
		return // no short masked text frame
	}
	text := make([]byte, len(raw)-6)
	for i := range text {
		text[i] = raw[6+i] ^ raw[2+i%4]
	}
	var said struct {
		ID string `json:"envelope_id"`
	}
	if json.Unmarshal(text, &said) != nil {
		return
	}
	if at, ok := s.came[said.ID]; ok {
		r.acks = append(r.acks, ack{"envelope " + said.ID, r.syncedSince(at)})
	}
}

// unescaped undoes strace's escapes, which are C's.
func unescaped(s string) []byte {
	var out []byte
	plain := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'v': '\v', 'f': '\f', '"': '"', '\\': '\\'}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		if c, ok := plain[s[i]]; ok {
			out = append(out, c)
			continue
		}
		end := i
		for end < len(s) && end < i+3 && s[end] >= '0' && s[end] <= '7' {
			end++
		}
		n, err := strconv.ParseUint(s[i:end], 8, 8)
		if err != nil {
			return nil
		}
		out = append(out, byte(n))
		i = end - 1
	}
	return out
}
