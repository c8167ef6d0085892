package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/gateway"
	"parley/gateway/logbook"
)

// canaries are credentials of the configuration below.
const (
	keyCanary    = "sk-canary/with+odd%signs"
	tokenCanary  = "gateway-token-canary-0123456789"
	customCanary = "file-canary-0123456789"
)

func loggedConfig(t *testing.T) *configs.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(customCanary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Parse([]byte(fmt.Sprintf(`
data_dir: %s
gateway: {token: %s}
models: [{name: m, api: openai, api_key: "%s", model: "${file:%s/secret}"}]
`, dir, tokenCanary, keyCanary, dir)), configs.LoadOptions{Path: filepath.Join(dir, "parley.yaml"), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type shouting struct{ s string }

func (s shouting) LogValue() slog.Value {
	return slog.GroupValue(slog.String("inner", s.s), slog.Any("err", errors.New(s.s)))
}

// T12: whatever is logged, and however, no credential's value comes out, nor its escaped forms; control characters
// are shown and not sent, and what is long is cut.
func TestT12_LogHidesSecretsByValueAndEscapes(t *testing.T) {
	t.Parallel()
	c := loggedConfig(t)
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		book := gateway.NewLogbook()
		log := slog.New(newLogHandler(Log{&out, slog.LevelDebug, asJSON}, gateway.NewSecrets(func() *configs.Config { return c }, os.LookupEnv).Redact, book.Handler))
		for _, secret := range []string{keyCanary, tokenCanary, customCanary} {
			log.Info("string", "v", "before "+secret+" after")
			log.Info("message " + secret)
			log.Info("error", "err", fmt.Errorf("post https://x/%s: %w", secret, errors.New(secret)))
			log.Info("group", slog.Group("g", "v", secret, slog.Group("h", "v", secret)))
			log.Info("valuer", "v", shouting{secret})
			log.Info("any", "v", []string{secret}, "w", map[string]string{"k": secret}, "x", &struct{ S string }{secret}, "y", []byte(secret))
			log.With("v", secret).WithGroup("g").With("w", secret).Info("with")
			log.Info("escaped", "q", strings.NewReplacer("/", "%2F", "+", "%2B", "%", "%25").Replace(secret))
		}
		log.Info("control", "v", "a\x1b[31mred\x07\r\nlevel=ERROR msg=forged \u202e\u2066\U000E0041 \x9b \u2028 end")
		log.Info("long", "v", strings.Repeat("ü", maxLogged))
		log.Debug("nil", "v", nil, "err", error(nil))
		text := out.String()
		kept, _ := book.Read(logbook.Query{Limit: 1000, Least: slog.LevelDebug})
		if strings.Count(text, "\n") != len(kept) {
			t.Errorf("%d lines were written, %d kept", strings.Count(text, "\n"), len(kept))
		}
		for _, secret := range []string{keyCanary, tokenCanary, customCanary, "sk-canary%2Fwith%2Bodd%25signs"} {
			if strings.Contains(fmt.Sprint(kept), secret) {
				t.Errorf("json %v: %s is kept in memory", asJSON, secret)
			}
			if strings.Contains(text, secret) {
				t.Errorf("json %v: %s in %s", asJSON, secret, line(text, secret))
			}
		}
		if n := strings.Count(text, "[secret]"); n < 30 {
			t.Errorf("json %v: only %d are hidden", asJSON, n)
		}
		for _, r := range "\x1b\x07\r\u202e\u2066\U000E0041\u009b\u2028" {
			if strings.ContainsRune(text, r) {
				t.Errorf("json %v: %U comes through", asJSON, r)
			}
		}
		for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
			if len(l) > maxLogged+500 || strings.HasPrefix(l, "level=ERROR") {
				t.Errorf("json %v: %d bytes: %.100s", asJSON, len(l), l)
			}
		}
	}
}

func line(text, what string) string {
	for l := range strings.Lines(text) {
		if strings.Contains(l, what) {
			return l
		}
	}
	return ""
}

// T12: a secret that a reload replaced is still hidden: errors of before may yet be logged.
func TestT12_LogHidesReplacedSecrets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	old, next := loggedConfig(t), &configs.Config{DataDir: t.TempDir()}
	current := old
	log := slog.New(newLogHandler(Log{To: &out}, gateway.NewSecrets(func() *configs.Config { return current }, os.LookupEnv).Redact, gateway.NewLogbook().Handler))
	log.Info("old", "v", keyCanary)
	current = next
	log.Info("new", "v", keyCanary)
	if err := os.WriteFile(filepath.Join(next.DataDir, "token"), []byte("made-token-canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log.Info("token that was made meanwhile", "v", "made-token-canary")
	if text := out.String(); strings.Contains(text, "canary") {
		t.Error(text)
	}
}

func TestVisibleKeepsTextAndShowsControl(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"plain äöü 😀\n\tx": "plain äöü 😀\n\tx", "\x1b]0;title\x07": "␛]0;title␇", "a\rb\r\n": "ab\n", "\u202eabc": "\uFFFDabc", "\x7f": "\uFFFD"} {
		if got := cli.Visible(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
