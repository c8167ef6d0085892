package printer

import (
	"bytes"
	"encoding/json"
	"testing"

	"parley/gateway/client"
)

// Each line of a command is printed once, when it has ended, and what was passed over is counted.
func TestWhatACommandWritesIsPrintedOnce(t *testing.T) {
	t.Parallel()
	const want = "  one\n  two\n  two\n  … (5 lines more)\n  eight\n  nine\n  other\n"
	for live, want := range map[bool]string{true: want, false: ""} {
		var out, errs bytes.Buffer
		p := &Printer{Out: &out, Errs: &errs, Live: live}
		for _, o := range []output{
			{"c", "on", 0}, {"c", "one\ntw", 1}, {"c", "one\ntw", 1}, {"c", "one\ntwo\ntwo\n", 3}, {"c", "eight\nnine\nte", 10}, {"d", "other\n", 1},
		} {
			data, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.See(client.Event{Type: "item.output", Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		if errs.String() != want || out.Len() > 0 {
			t.Errorf("live %v: %q and %q", live, errs.String(), out.String())
		}
	}
}
