package markup

import (
	"testing"

	"parley/channels"
)

func benchmark(b *testing.B, md string, d channels.Dialect) {
	tr := traits(d)
	b.ReportAllocs()
	b.SetBytes(int64(len(md)))
	for b.Loop() {
		for _, s := range Cut(md, tr) {
			if text, _ := Render(md, s, d); text == "" {
				b.Fatal("empty")
			}
		}
	}
}

// The hot path: a short answer without markup, cut and rendered. Aim: < 2 µs, at most 2 allocations.
func BenchmarkPlainShort(b *testing.B) { benchmark(b, "pong 123", channels.Telegram) }

func BenchmarkPlainParagraphs(b *testing.B) {
	benchmark(b, "Hello Anna,\n\nthe build (number 12) is green again. It took 4 minutes: two less than before!\nShall I deploy?", channels.Slack)
}

func BenchmarkMarked(b *testing.B) {
	benchmark(b, "Done. **Two** files changed, see [the docs](https://docs.example/a):\n\n- `a.go`\n- `b.go`\n\n```go\nfmt.Println(1)\n```\n", channels.Telegram)
}

// One answer of 100 kB, parsed once as deliver does.
func BenchmarkLong(b *testing.B) {
	md := long(100_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(md)))
	for b.Loop() {
		doc := Parse(md)
		for _, s := range doc.CutFrom(0, traits(channels.Telegram)) {
			doc.Render(s, channels.Telegram)
		}
	}
}

func TestShortAnswersAllocateOnce(t *testing.T) {
	tr := traits(channels.Telegram)
	n := testing.AllocsPerRun(100, func() {
		for _, s := range Cut("pong 123", tr) {
			Render("pong 123", s, channels.Telegram)
		}
	})
	if n > 2 {
		t.Errorf("%v allocations", n)
	}
}
