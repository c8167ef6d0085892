package gateway_test

import (
	"os"
	"strings"
	"testing"

	"parley/gateway"
)

// With no model configured a server that the environment names is found by itself, and answers.
func TestModelIsFoundWhenNoneIsConfigured(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	r.stop()
	conf, err := os.ReadFile(r.conf)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(conf)) {
		if !strings.HasPrefix(line, "models:") {
			kept = append(kept, strings.Replace(line, ", model: m}", "}", 1))
		}
	}
	r.write(strings.Join(kept, ""))
	r.start(func(o *gateway.Options) {
		o.Env = func(name string) (string, bool) {
			if name != "OPENAI_BASE_URL" {
				return "", false
			}
			return r.modelURL(), true
		}
	})
	ana := r.person(11)
	r.say(ana, 11, "one")
	if got := r.wait(ana, 1)[0].Text; got != "echo: one" {
		t.Errorf("got %q", got)
	}
	if log := r.log.String(); !strings.Contains(log, `msg="model found"`) || strings.Contains(log, "level=WARN msg=\"no model") {
		t.Error("the log does not say what was found")
	}
}
