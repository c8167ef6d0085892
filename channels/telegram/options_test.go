package telegram

import (
	"strings"
	"testing"
)

func TestOptionsAreJudgedWithoutTheNetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		token, url, want string
	}{
		{"123:ABC-def_1", "", ""},
		{"123:ABC", "http://127.0.0.1:8081/", ""},
		{"", "", "token is missing"},
		{"ABC-def", "", "token is not a bot token"},
		{"123:", "", "token is not a bot token"},
		{"123:AB C", "", "token is not a bot token"},
		{"123:AB/../x", "", "token is not a bot token"},
		{"123:ABC", "nonsense", "api_url must be"},
		{"123:ABC", "ftp://h", "api_url must be"},
		{"123:ABC", "http://h/?token=1", "api_url must be"},
	} {
		err := (&Options{Token: Secret(c.token), APIURL: c.url}).Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q %q: %v, want %q", c.token, c.url, err, c.want)
		}
		if err != nil && c.token != "" && strings.Contains(err.Error(), c.token) {
			t.Errorf("the token stands in %v", err)
		}
	}
	for id, good := range map[string]bool{"123": true, "-1001234567890": true, "@bob": false, "bob": false, "": false, "12 3": false, "+49": false} {
		if err := (&Options{}).CheckID(id); (err == nil) != good {
			t.Errorf("id %q: %v", id, err)
		}
	}
}
