package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// target is what a request wants to reach: a name in lower-case ASCII without a trailing dot, and a port.
type target struct {
	host string
	port uint16
}

// list is the hosts that may be reached.
type list struct {
	exact map[target]bool
	below []target // host begins with a dot
}

// parseList reads name:port and *.name:port. Names with other letters than ASCII's are kept as IDNA writes them
// (RFC 5891), so that a request must name them so.
func parseList(entries []string) (list, error) {
	l := list{exact: map[target]bool{}}
	for _, entry := range entries {
		host, port, ok := cutPort(entry)
		if !ok {
			return l, fmt.Errorf("egress host %q is not name:port", entry)
		}
		rest, below := strings.CutPrefix(host, "*.")
		name, err := idna.Lookup.ToASCII(rest)
		if err != nil {
			return l, fmt.Errorf("egress host %q: %w", entry, err)
		}
		if reason := judgeHost(name, off{}); reason != "" {
			return l, fmt.Errorf("egress host %q: %s", entry, reason)
		}
		if below {
			l.below = append(l.below, target{"." + name, port})
			continue
		}
		l.exact[target{name, port}] = true
	}
	return l, nil
}

func (l list) has(to target, o off) bool {
	if l.exact[to] || o.has(checkList) {
		return true
	}
	if o.has(checkPort) {
		for known := range l.exact {
			if known.host == to.host {
				return true
			}
		}
	}
	for _, b := range l.below {
		suffix := b.host
		if o.has(checkSuffix) {
			suffix = suffix[1:]
		}
		if (b.port == to.port || o.has(checkPort)) && len(to.host) > len(suffix) && strings.HasSuffix(to.host, suffix) {
			return true
		}
	}
	return false
}

// judgeName says why a target may not be reached whatever its address is; empty: it may.
func (p *Proxy) judgeName(to target) string {
	if reason := judgeHost(to.host, p.off); reason != "" {
		return reason
	}
	if !p.allow.has(to, p.off) {
		return ReasonList
	}
	return ""
}

// judgeHost says why something is not a name of a host; empty: it is one. Addresses are refused in every form that some
// resolver takes for one: whatever ends in a number is an address (WHATWG URL, 3.5).
func judgeHost(host string, o off) string {
	if !o.has(checkLiteral) {
		if _, err := netip.ParseAddr(host); err == nil || strings.ContainsAny(host, "[]:%") || endsInNumber(host) {
			return ReasonLiteral
		}
	}
	if len(host) == 0 || len(host) > 253 {
		return ReasonName
	}
	for label := range strings.SplitSeq(host, ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return ReasonName // a trailing dot too
		}
		for i := range len(label) {
			c := label[i]
			if o.has(checkLiteral) && c == ':' {
				continue
			}
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return ReasonName
			}
		}
	}
	return ""
}

func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return false
	}
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(strings.ToLower(last), "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// cutPort reads name:port; the port is digits without a leading zero, 1 to 65535.
func cutPort(authority string) (host string, port uint16, ok bool) {
	i := strings.LastIndexByte(authority, ':')
	if i <= 0 || authority[i+1:] == "" || authority[i+1] == '0' || strings.Trim(authority[i+1:], "0123456789") != "" {
		return "", 0, false
	}
	n, err := strconv.ParseUint(authority[i+1:], 10, 16)
	return authority[:i], uint16(n), err == nil
}
