package progress

import (
	"strings"
	"testing"
)

// What is shown of a growing answer is what later text will not change: for each prefix of a text the settled part only
// grows, and it never ends inside a block of code, a link or an emphasis.
func TestSettledTextOnlyGrows(t *testing.T) {
	t.Parallel()
	text := "Plain words first, and *then some emphasis* with `code` and [a link](https://x.example/).\n\n- one\n- two **bold\n```go\nfunc f() {}\n\nx\n```\nand after the code, more words\n~~~\n"
	shown := ""
	for end := range len(text) {
		part := settled(text[:end])
		if !strings.HasPrefix(text, part) {
			t.Fatalf("%q is not a beginning of the text", part)
		}
		if !strings.HasPrefix(part, shown) && !strings.HasPrefix(shown, part) {
			t.Fatalf("%q came after %q", part, shown)
		}
		if len(part) > len(shown) {
			shown = part
		}
		if n := strings.Count("\n"+part, "\n```"); n%2 != 0 {
			t.Fatalf("%q ends inside a block of code", part)
		}
		if line := part[strings.LastIndexByte(part, '\n')+1:]; strings.ContainsAny(line, "*`[") {
			t.Fatalf("%q ends inside a mark", part)
		}
	}
	if !strings.Contains(shown, "more words") {
		t.Errorf("it stays at %q", shown)
	}
}
