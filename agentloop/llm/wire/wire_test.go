package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"parley/agentloop/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forever is a line that does not end.
type forever struct{ read int }

func (f *forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	f.read += len(p)
	return len(p), nil
}

func TestR07_EndlessLineIsGivenUp(t *testing.T) {
	t.Parallel()
	var f forever
	e := NewEvents(bufio.NewReader(&f), nil)
	if _, _, err := e.Next(); err != ErrTooLong || f.read > MaxLine+8192 {
		t.Errorf("%v after %d bytes", err, f.read)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: a\n\n: c\ndata:b\ndata"))
	f.Fuzz(func(t *testing.T, in []byte) {
		read := func(size int) (out []string) {
			e := NewEvents(bufio.NewReaderSize(bytes.NewReader(in), size), nil)
			for {
				name, data, err := e.Next()
				if err != nil {
					if err != io.EOF {
						t.Fatal(err)
					}
					return out
				}
				out = append(out, name+"\x00"+string(data))
			}
		}
		// Where the buffer ends must not matter.
		if small, big := read(16), read(1<<16); strings.Join(small, "\x01") != strings.Join(big, "\x01") {
			t.Fatalf("%q, %q", small, big)
		}
	})
}

func TestRetryAfterInEveryForm(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0.5": 500 * time.Millisecond, "-3": 0, "soon": 0, "1e300": 0, "NaN": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
	if got := RetryAfter(http.Header{"Retry-After-Ms": {"120"}, "Retry-After": {"9"}}, now); got != 120*time.Millisecond {
		t.Errorf("milliseconds: %s", got)
	}
}

func TestPrefixCacheForgetsTheOldestAndNeverMixes(t *testing.T) {
	t.Parallel()
	all := []llm.Tool{{Name: "a"}, {Name: "b", Description: "d"}, {Name: "c", Schema: json.RawMessage(`{}`)}}
	encode := func(system string, tools []llm.Tool) []byte {
		b, _ := json.Marshal([]any{system, tools}) // of plain values
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		p := Prefixes{Encode: encode}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			sys := strings.Repeat("s", rapid.IntRange(0, 30).Draw(t, "system"))
			ts := all[:rapid.IntRange(0, 3).Draw(t, "tools")]
			if got, want := string(p.Encoded(sys, ts)), string(encode(sys, ts)); got != want {
				t.Fatalf("got %s want %s", got, want)
			}
			if len(p.kept) > maxPrefixes {
				t.Fatal("grows")
			}
		}
	})
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\x00\"\\\n\u2028\xff<é😀")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, ""); utf8.ValidString(s) && got != want {
			t.Fatalf("%q became %q", s, got)
		}
		std, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(std, &want); err != nil || got != want {
			t.Fatalf("%q: %q, encoding/json says %q", s, got, want)
		}
	})
}

// What is closed reads as the beginning of what was said, wherever it was cut.
func TestCloseReadsTheBeginning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		said := rapid.String().Draw(t, "text")
		text, err := json.Marshal(map[string]any{"a": []any{1, map[string]any{"text": said}}})
		if err != nil {
			t.Fatal(err)
		}
		from := bytes.Index(text, []byte(`"text":"`)) + len(`"text":"`)
		at := rapid.IntRange(0, len(text)).Draw(t, "cut")
		var got struct {
			A []json.RawMessage `json:"a"`
		}
		var inner struct {
			Text string `json:"text"`
		}
		whole := Close(text[:at])
		if at < from || at > len(text)-len(`"}]}`) {
			return // anything but a panic
		}
		if json.Unmarshal(whole, &got) != nil || len(got.A) != 2 || json.Unmarshal(got.A[1], &inner) != nil || !strings.HasPrefix(strings.ToValidUTF8(said, "\uFFFD"), inner.Text) {
			t.Fatalf("%q of %q became %q", text[:at], said, whole)
		}
	})
}
