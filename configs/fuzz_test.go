package configs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/configs"
)

// FuzzParse: no file makes it panic, every problem has a line, what is taken can be shown and read back, and the credential
// of the environment is neither in what is said nor in what is shown.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add(configs.Example)
	f.Add([]byte(everySecret))
	f.Add([]byte("a: &a [*a]\n<<: *a\n? [x]\n: y\n"))
	f.Add([]byte("agents: &a\n- &b {id: *b, tools: {by_role: {owner: *b}}}\n- *b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		o := configs.LoadOptions{Env: env("C="+canary, "OPENAI_API_KEY="+canary, "TELEGRAM_TOKEN="+canary), Sections: sections()}
		c, err := configs.Parse(text, o)
		if err != nil {
			var e *configs.Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("not a list of problems: %v", err)
			}
			for _, p := range e.Problems {
				if p.Line < 1 {
					t.Errorf("no line: %v", p)
				}
				if strings.Contains(p.Error(), canary) && !strings.Contains(string(text), canary) {
					t.Errorf("a credential is shown: %v", p)
				}
			}
			return
		}
		shown, err := c.Show()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), canary) {
			return
		}
		for _, secret := range c.Secrets() {
			if len(secret) >= 6 && strings.Contains(string(shown), secret) {
				t.Errorf("%q is shown:\n%s", secret, shown)
			}
		}
		if len(c.Secrets()) > 0 {
			return // [secret] is not a credential
		}
		if _, err := configs.Parse(shown, o); err != nil {
			t.Errorf("what is shown cannot be read back: %v\n%s", err, shown)
		}
	})
}
