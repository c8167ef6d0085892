package all_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"parley/channels"
	"parley/channels/all"
)

// How a network is set up fits what its adapter reads: its fields are options of it, secret where those are, and all that is needed is asked.
func TestSetupFitsTheOptions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range all.Factories() {
		s := f.Setup
		if s.Title == "" {
			if _, err := f.New("x", f.Options(), channels.Deps{}); err != nil {
				continue // this binary was built without it
			}
		}
		if s.Title == "" || s.Name == "" || len(s.Steps) == 0 || len(s.Links) == 0 || len(s.After) == 0 || seen[s.Name] || s.QR == (len(s.Fields) > 0) {
			t.Errorf("%s: %+v", f.Network, s)
		}
		seen[s.Name] = true
		for _, l := range s.Links {
			if u, err := url.Parse(l.URL); err != nil || u.Scheme != "https" || l.Title == "" {
				t.Errorf("%s: link %+v", f.Network, l)
			}
		}
		for _, text := range append(s.Steps, s.After...) {
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
				t.Errorf("%s: a step that is no sentence: %q", f.Network, text)
			}
		}
		options := reflect.TypeOf(f.Options()).Elem()
		asked := map[string]bool{}
		for _, field := range s.Fields {
			asked[field.Key] = true
			i, ok := find(options, field.Key)
			if !ok || (i.Tag.Get("secret") == "true") != field.Secret || field.Title == "" || field.Help == "" || field.Placeholder == "" {
				t.Errorf("%s: %+v", f.Network, field)
			}
		}
		for i := range options.NumField() {
			if o := options.Field(i); o.Tag.Get("required") == "true" && !asked[o.Tag.Get("yaml")] {
				t.Errorf("%s: %s is needed, and nobody is asked for it", f.Network, o.Tag.Get("yaml"))
			}
		}
	}
}

func find(options reflect.Type, key string) (reflect.StructField, bool) {
	for i := range options.NumField() {
		if options.Field(i).Tag.Get("yaml") == key {
			return options.Field(i), true
		}
	}
	return reflect.StructField{}, false
}
