package slack

import (
	"net/http"
	"slices"
	"strings"
)

// scopes are what the app asks for, in the order of the manifest, and what each is for.
func scopes() [][2]string {
	return [][2]string{
		{"app_mentions:read", "to hear where it is mentioned"},
		{"channels:history", "to read channels that it is in"},
		{"channels:read", "to know channels' names"},
		{"chat:write", "to answer"},
		{"commands", "for /parley"},
		{"files:read", "to open files that are sent to it"},
		{"files:write", "to send files"},
		{"groups:history", "to read private channels that it is in"},
		{"groups:read", "to know private channels' names"},
		{"im:history", "to read direct messages"},
		{"im:read", "to know direct messages"},
		{"im:write", "to open direct messages"},
		{"mpim:history", "to read group conversations"},
		{"mpim:read", "to know group conversations"},
		{"reactions:read", "to see reactions"},
		{"reactions:write", "to mark what it works on"},
		{"users:read", "to know people's names"},
	}
}

// missingScopes compares what the answer's header grants; nil also when there is no such header, as behind some proxies.
func missingScopes(h http.Header) (missing []string) {
	granted := h.Get("X-OAuth-Scopes")
	if granted == "" {
		return nil
	}
	have := strings.FieldsFunc(granted, func(r rune) bool { return r == ',' || r == ' ' })
	for _, s := range scopes() {
		if !slices.Contains(have, s[0]) {
			missing = append(missing, s[0])
		}
	}
	return missing
}

const reinstall = "Add them at https://api.slack.com/apps under OAuth & Permissions and install the app again."
