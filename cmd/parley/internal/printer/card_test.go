package printer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestCardIsOneLine(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		args, result string
		failed       bool
		took         time.Duration
		want         string
	}{
		{`{"path":"a.txt"}`, "hello", false, 1200 * time.Millisecond, "tool a.txt  1.2 s  hello"},
		{`{"command":"ls -l\nrm x","path":"p"}`, "", false, 20 * time.Millisecond, "tool ls -l …  20 ms"},
		{`{"other":"x"}`, "no such file", true, 2 * time.Minute, "tool x  2m0s  failed: no such file"},
		{`broken`, "a\nb\nc", false, 0, "tool  0 ms  a (2 lines more)"},
		{`{"path":"` + strings.Repeat("日", 50) + `"}`, "ok", false, 0, "tool " + strings.Repeat("日", 30) + "…  0 ms  ok"},
	} {
		if got := newCard("tool", json.RawMessage(c.args), at).done(c.result, c.failed, at.Add(c.took)); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}
