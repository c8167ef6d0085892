package operator_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"parley/channels/all"
	"parley/gateway/control/operator"
)

// Slack's app is made by one link that brings the whole manifest along.
func TestTheManifestComesWithTheLink(t *testing.T) {
	t.Parallel()
	kinds, err := operator.Kinds(all.Factories())
	if err != nil || len(kinds) < 3 {
		t.Fatal(kinds, err)
	}
	for _, k := range kinds {
		if (k.Type == "slack") != (k.Manifest != "") {
			t.Errorf("%s has the manifest %q", k.Type, k.Manifest)
		}
		if k.Manifest == "" {
			continue
		}
		u, err := url.Parse(k.Links[0].URL)
		if err != nil {
			t.Fatal(err)
		}
		var have, want any
		if json.Unmarshal([]byte(u.Query().Get("manifest_json")), &have) != nil || json.Unmarshal([]byte(k.Manifest), &want) != nil || len(u.String()) > 4096 {
			t.Errorf("%d bytes: %s", len(u.String()), u)
		}
		a, _ := json.Marshal(have) // what was JSON is
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("the link brings %s", a)
		}
	}
}
