// Package origin reads the address by which others reach a gateway: one origin, as browsers have it (RFC 6454 §6.2).
package origin

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Loopback says whether a host can be reached from this machine only. A name other than localhost cannot be relied on.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Of is an address as browsers write an origin: in lower case, without the usual port, without a slash. Empty: it is none.
func Of(text string) string {
	origin, _ := Read(text)
	return origin
}

// hostLetters are what a name of DNS or an IP address is written in.
const hostLetters = "abcdefghijklmnopqrstuvwxyz0123456789-.:"

// Read reads an address, and says what is wrong with it. It is never quoted: it may hold a password. An empty one is none.
func Read(text string) (origin, wrong string) {
	if text == "" {
		return "", ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return "", "must be an address such as https://parley.example.org"
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	switch {
	case u.User != nil:
		return "", "may not hold a user or password"
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "", "is scheme, host and port alone, without a path: the gateway is served at the root of its own host"
	case strings.ContainsFunc(host, func(r rune) bool { return !strings.ContainsRune(hostLetters, r) }):
		return "", "must name one host, such as parley.example.org; write other letters in their xn-- form"
	case u.Scheme == "http" && !Loopback(host):
		return "", "must be https: over http a sign-in can be read on its way. Only loopback may be http"
	case strings.HasSuffix(u.Host, ":"):
		return "", "ends in a colon without a port"
	case port == map[string]string{"http": "80", "https": "443"}[u.Scheme]:
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host, ""
}
