package telegramtest

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseHTML(t *testing.T) {
	t.Parallel()
	rows := []struct{ src, text, ents string }{
		{"plain", "plain", ""},
		{"<b>a</b><i>b</i>", "ab", "bold 0+1 italic 1+1"},
		{"<B>a</B >", "a", "bold 0+1"},
		{"<b>a</>", "a", "bold 0+1"}, // an empty name closes the last tag, as on the public server
		{"😀<b>x</b>", "😀x", "bold 2+1"},
		{"<b>👨‍👩‍👧</b>", "👨‍👩‍👧", "bold 0+8"},
		{"<u><s>x</s></u>", "x", "strikethrough 0+1 underline 0+1"},
		{"a<b></b>c", "ac", ""},
		{"&lt;b&gt; &amp; &quot; &#65; &#x1F600;", "<b> & \" A 😀", ""},
		{`<a href="https://e.org/?a=1&amp;b=2">x</a>`, "x", "text_link 0+1 https://e.org/?a=1&b=2"},
		{`<a href='tg://user?id=7'>x</a>`, "x", "text_mention 0+1 user 7"},
		{`<a>e.org</a>`, "e.org", "text_link 0+5 e.org"},
		{`<a href="nonsense">x</a>`, "x", ""},
		{`<pre><code class="language-go">f()</code></pre>`, "f()", "pre 0+3 go"},
		{`<pre>f()</pre>`, "f()", "pre 0+3"},
		{`<code>f()</code>`, "f()", "code 0+3"},
		{`<blockquote expandable>q</blockquote>`, "q", "expandable_blockquote 0+1"},
		{`<blockquote>q</blockquote>`, "q", "blockquote 0+1"},
		{`<tg-spoiler>q</tg-spoiler><span class="tg-spoiler">q</span>`, "qq", "spoiler 0+1 spoiler 1+1"},
		{`<tg-emoji emoji-id="5368324170671202286">👍</tg-emoji>`, "👍", "custom_emoji 0+2"},
		{"a > b", "a > b", ""},
	}
	for _, r := range rows {
		text, ents, err := ParseHTML(r.src, false)
		var got []string
		for _, e := range ents {
			s := fmt.Sprintf("%s %d+%d", e.Type, e.Offset, e.Length)
			if e.URL+e.Language != "" {
				s += " " + e.URL + e.Language
			}
			if e.User != nil {
				s += fmt.Sprint(" user ", e.User.ID)
			}
			got = append(got, s)
		}
		if err != nil || text != r.text || strings.Join(got, " ") != r.ents {
			t.Errorf("%s:\n got %q %q %v\nwant %q %q", r.src, text, got, err, r.text, r.ents)
		}
	}
}

func TestLooseAmpersandIsText(t *testing.T) {
	t.Parallel()
	if text, _, err := ParseHTML("a & b &nbsp; &lt", true); err != nil || text != "a & b &nbsp; <" {
		t.Errorf("%q %v", text, err)
	}
}

func TestFindEntities(t *testing.T) {
	t.Parallel()
	rows := map[string]string{
		"hi @ana_b!":            "mention 3+6",
		"mail x@mybot.example":  "",
		"/new@my_bot now":       "bot_command 0+11",
		"😀 /new":                "bot_command 3+4",
		"see /etc/passwd":       "",
		"@ab":                   "",
		"https://e.org/a /stop": "bot_command 16+5",
		"(@carol)":              "mention 1+6",
	}
	for text, want := range rows {
		var got []string
		for _, e := range findEntities(text) {
			got = append(got, fmt.Sprintf("%s %d+%d", e.Type, e.Offset, e.Length))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %q", text, got, want)
		}
	}
}

// FuzzParseHTML: what is taken has entities inside its text, and escaped text comes back as it was.
func FuzzParseHTML(f *testing.F) {
	for _, s := range []string{"<b>x</b>", "<a href=\"x\">y</a>", "&#x1F600;", "<", "&", "</", "<a b", "<pre><code class=language-x>y</code></pre>", "<a href='"} {
		f.Add(s)
	}
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	f.Fuzz(func(t *testing.T, src string) {
		if !utf8.ValidString(src) {
			return
		}
		text, ents, err := ParseHTML(src, true)
		if err == nil {
			for _, e := range ents {
				if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > units(text) {
					t.Fatalf("entity %+v outside %q", e, text)
				}
			}
		}
		if got, _, err := ParseHTML(escape.Replace(src), false); err != nil || got != src {
			t.Fatalf("escaped %q came back as %q, %v", src, got, err)
		}
	})
}
