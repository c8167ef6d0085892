package source_test

import (
	"os"
	"strings"
	"testing"

	"parley/configs"
)

// canary is a credential.
const canary = "canary-9d1c6b"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sections() []configs.Section {
	return []configs.Section{{Type: "telegram", Options: func() any {
		return &struct {
			Token configs.Secret `yaml:"token"`
		}{}
	}}}
}

// env makes a lookup from NAME=value.
func env(pairs ...string) configs.Lookup {
	values := map[string]string{"HOME": "/home/ana"}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}
