package configs_test

import (
	"errors"
	"strings"
	"testing"

	"parley/configs"
)

// telegram stands for an adapter's own options, with a secret type of its own.
type telegram struct {
	Token  Secret   `yaml:"token" required:"true" doc:"Bot token of the account." example:"${TELEGRAM_TOKEN}"`
	APIURL string   `yaml:"api_url" doc:"Another server than Telegram's." example:"http://127.0.0.1:9102"`
	Extra  []string `yaml:"extra" doc:"Words."`
	Pin    string   `yaml:"pin" secret:"true" doc:"A code."`
	Limit  int      `yaml:"limit" default:"7" min:"1" max:"9" doc:"A number."`
}

// Secret is an adapter's own, which masks nothing by itself.
type Secret string

func sections() []configs.Section {
	return []configs.Section{
		{Type: "telegram", Options: func() any { return &telegram{} }},
		{Type: "slack", Options: func() any { return &struct{}{} }},
	}
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

func parse(t *testing.T, text string, vars ...string) (*configs.Config, error) {
	t.Helper()
	return configs.Parse([]byte(text), configs.LoadOptions{Env: env(vars...), Sections: sections()})
}

func mustParse(t *testing.T, text string, vars ...string) *configs.Config {
	t.Helper()
	c, err := parse(t, text, vars...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problems are the sentences of what is wrong.
func problems(t *testing.T, err error) []string {
	t.Helper()
	var e *configs.Error
	if !errors.As(err, &e) {
		t.Fatalf("want a *configs.Error, got %v", err)
	}
	var list []string
	for _, p := range e.Problems {
		list = append(list, p.Error())
	}
	return list
}
