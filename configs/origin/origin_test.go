package origin_test

import (
	"strings"
	"testing"

	"parley/configs"
	"parley/configs/origin"
)

// The public address is one origin, and is never read in the open.
func TestPublicURLIsOneOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "https://parley.example.org": "https://parley.example.org", "https://Parley.Example.ORG/": "https://parley.example.org",
		"https://parley.example.org:443": "https://parley.example.org", "https://parley.example.org:8443": "https://parley.example.org:8443",
		"http://127.0.0.1:8420": "http://127.0.0.1:8420", "http://localhost": "http://localhost", "http://[::1]:80/": "http://[::1]",
		"https://[2001:db8::1]:8443": "https://[2001:db8::1]:8443", "https://xn--bcher-kva.example": "https://xn--bcher-kva.example",
	} {
		got, wrong := origin.Read(text)
		if got != want || wrong != "" {
			t.Errorf("%s: %q, %q; want %q", text, got, wrong, want)
		}
	}
	for text, says := range map[string]string{
		"http://parley.example.org": "must be https", "https://me:canary@parley.example.org": "user or password", "parley.example.org": "address such as",
		"https://parley.example.org/chat": "without a path", "https://parley.example.org/?": "without a path",
		"https://parley.example.org?q=canary": "without a path", "https://parley.example.org/#": "without a path",
		"https://parley.example.org#canary": "without a path", "https://*.example.org": "one host", "https://bücher.example": "xn--",
		"ftp://parley.example.org": "address such as", "https://": "address such as", "https://parley.example.org:": "without a port",
		"javascript:alert(1)": "address such as", "https:parley.example.org": "address such as", "https://a b": "address such as",
	} {
		got, wrong := origin.Read(text)
		if got != "" || !strings.Contains(wrong, says) || strings.Contains(wrong, "canary") {
			t.Errorf("%s: %q, %q; want %q", text, got, wrong, says)
		}
		if _, err := configs.Parse([]byte("gateway: {public_url: '"+text+"', token: ''}"), configs.LoadOptions{}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s is taken: %v", text, err)
		}
	}
}
