package telegram

import (
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func TestSpanFindsTheWordWhateverStandsBeforeIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aß世😀👩 \u200d@")))
		before, word, after := text.Draw(t, "before"), text.Draw(t, "word")+"x", text.Draw(t, "after")
		all := before + word + after
		start, end, ok := span(all, units(before), units(word))
		if !ok || all[start:end] != word {
			t.Fatalf("span %d:%d %v of %q, want %q", start, end, ok, all, word)
		}
	})
}

func TestSpanRefusesWhatIsNotInTheText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text           string
		offset, length int
	}{
		{"abc", -1, 2}, {"abc", 0, 0}, {"abc", 0, -1}, {"abc", 2, 2}, {"abc", 3, 1}, {"", 0, 1},
		{"😀", 1, 1},         // inside a character
		{"😀a", 0, 1},        // ends inside a character
		{"abc", 1 << 62, 1}, // sums that overflow
		{"abc", 1, 1 << 62},
	} {
		if start, end, ok := span(c.text, c.offset, c.length); ok {
			t.Errorf("span(%q, %d, %d) is %d:%d", c.text, c.offset, c.length, start, end)
		}
	}
}

func TestAddressedNeverLosesWhatOthersWrote(t *testing.T) {
	t.Parallel()
	s := testIdentity()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab 😀/@,"))).Draw(t, "text")
		n := rapid.IntRange(0, 4).Draw(t, "entities")
		var entities []entity
		for range n {
			entities = append(entities, entity{
				Type:   rapid.SampledFrom([]string{"mention", "text_mention", "bot_command", "bold"}).Draw(t, "type"),
				Offset: rapid.IntRange(-1, 20).Draw(t, "offset"), Length: rapid.IntRange(-1, 20).Draw(t, "length"),
				User: &user{ID: 8},
			})
		}
		got := s.addressed(text, entities) // no entity is us: @ParleyBot cannot be drawn
		if got.mentioned || strings.TrimSpace(got.text) != strings.TrimSpace(text) {
			t.Fatalf("became %+v", got)
		}
	})
}

func TestCommandsAndNamesAreFoundWhereAServerMarksNone(t *testing.T) {
	t.Parallel()
	s := &identity{ID: 8, Username: "parley_bot"}
	for text, want := range map[string]spoken{
		"/status":                  {text: "/status", command: true},
		" /status@Parley_Bot now":  {text: "/status now", mentioned: true, command: true},
		"/status@other_bot":        {text: "/status@other_bot", foreign: true},
		"@parley_bot, hello":       {text: "hello", mentioned: true},
		"😀 @parley_bot hello":      {text: "😀 @parley_bot hello", mentioned: true},
		"@parley_bot /why":         {text: "/why", mentioned: true, command: true},
		"/usr/bin/ls is where":     {text: "/usr/bin/ls is where"},
		"write to bob@parley_bot":  {text: "write to bob@parley_bot"},
		"@parley_bots are many":    {text: "@parley_bots are many"},
		"a path /status@other_bot": {text: "a path /status@other_bot"},
		"1/2":                      {text: "1/2"},
	} {
		if got := s.addressed(text, nil); got != want {
			t.Errorf("%q became %+v, want %+v", text, got, want)
		}
	}
	marked := []entity{{Type: "code", Offset: 0, Length: 11}}
	if got := s.addressed("@parley_bot in code", marked); got.mentioned {
		t.Errorf("a name in code became %+v", got)
	}
}
