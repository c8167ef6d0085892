package egress

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Reasons of a refusal, as the log and the client see them.
const (
	ReasonBusy    = "too many connections"
	ReasonHead    = "the request is malformed"
	ReasonBytes   = "the request has control bytes or bare line ends"
	ReasonLong    = "the request's head is too long"
	ReasonForm    = "only CONNECT name:port and http://name/ are served"
	ReasonUser    = "the address has user information"
	ReasonHost    = "the Host field is missing, doubled, or names another host"
	ReasonBody    = "the length of the body is unclear"
	ReasonLiteral = "the host is an address, not a name"
	ReasonName    = "the host is not a name"
	ReasonList    = "the host and port are not on the list"
	ReasonUnknown = "the name has no address"
	ReasonAddress = "the name leads to a private or special address"
	ReasonOwn     = "the name leads to this machine"
	ReasonDial    = "the host does not answer"
)

// Bounds of a request's head, in bytes and fields.
const (
	maxHead   = 16 << 10
	maxFields = 100
)

// request is a head that was read and checked.
type request struct {
	method string
	to     target
	path   string // with the query, of a plain request
	header http.Header
	length int64 // of the body; -1: chunked
}

// badRequest is a head that is refused.
type badRequest struct {
	to     target
	reason string
}

func (b *badRequest) Error() string { return "bad request: " + b.reason }

func bad(reason string) error { return &badRequest{reason: reason} }

// readRequest reads one head. Other errors than a badRequest are of the connection.
func (p *Proxy) readRequest(in *bufio.Reader) (request, error) {
	var head []byte
	for { // the reader's buffer bounds what is taken in
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) || len(head)+len(line) > maxHead {
			return request{}, bad(ReasonLong)
		}
		if err != nil {
			return request{}, err
		}
		head = append(head, line...)
		if len(line) == 1 || string(line) == "\r\n" {
			break
		}
	}
	return p.parse(head)
}

// parse reads a whole head, the empty line included. It is stricter than RFC 9112 wherever that leaves room: what two
// servers could read differently is refused.
func (p *Proxy) parse(head []byte) (r request, err error) {
	if !p.off.has(checkBytes) {
		if reason := judgeBytes(head); reason != "" {
			return r, bad(reason)
		}
	}
	first, rest, _ := strings.Cut(string(head), "\r\n")
	words := strings.Split(first, " ")
	if len(words) != 3 || words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0" || !isToken(words[0]) {
		return r, bad(ReasonHead)
	}
	r.method = words[0]
	authority, err := r.split(words[1])
	if err != nil {
		return r, err
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		if !p.off.has(checkUserinfo) {
			return r, bad(ReasonUser)
		}
		authority = authority[i+1:]
	}
	host, port, ok := cutPort(authority)
	if !ok && r.method != http.MethodConnect && strings.LastIndexByte(authority, ':') <= strings.LastIndexByte(authority, ']') {
		host, port, ok = authority, 80, authority != ""
	}
	if !ok {
		return r, bad(ReasonForm)
	}
	if p.off.has(checkASCII) { // broken: letters that look alike are folded
		host, _ = idna.Lookup.ToASCII(host)
	}
	r.to = target{strings.ToLower(host), port}
	defer func() { // who reads the refusal wants to know of whom
		if b := (*badRequest)(nil); errors.As(err, &b) {
			b.to = r.to
		}
	}()
	if r.header, err = fields(rest); err != nil {
		return r, err
	}
	if !p.off.has(checkHost) && !r.hostAgrees(authority, words[2]) {
		return r, bad(ReasonHost)
	}
	return r, r.body()
}

// judgeBytes lets printable ASCII and the line ends of RFC 9112 pass, and bytes above ASCII inside field values alone.
func judgeBytes(head []byte) string {
	line, value := 0, false
	for i, c := range head {
		switch {
		case c == '\r' && i+1 < len(head) && head[i+1] == '\n':
		case c == '\n' && i > 0 && head[i-1] == '\r':
			line, value = line+1, false
		case c == ':' && line > 0:
			value = true
		case c == '\t' && value, c >= 0x80 && value:
		case c < ' ' || c >= 0x7f:
			return ReasonBytes
		}
	}
	return ""
}

// split takes the request's target apart: an authority alone for CONNECT, http:// and a path for all else.
func (r *request) split(uri string) (authority string, err error) {
	if r.method == http.MethodConnect {
		if strings.ContainsAny(uri, "/?#\\") {
			return "", bad(ReasonForm)
		}
		return uri, nil
	}
	if len(uri) < 7 || !strings.EqualFold(uri[:7], "http://") || r.method == http.MethodTrace || strings.ContainsAny(uri, "#\\") {
		return "", bad(ReasonForm)
	}
	authority, r.path = uri[7:], "/"
	if i := strings.IndexAny(authority, "/?"); i >= 0 {
		r.path = authority[i:]
		if authority = authority[:i]; r.path[0] == '?' {
			r.path = "/" + r.path
		}
	}
	return authority, nil
}

// fields reads a head's fields. Folded lines and spaces before the colon are refused.
func fields(text string) (http.Header, error) {
	h := http.Header{}
	for n := 0; ; n++ {
		line, rest, ok := strings.Cut(text, "\r\n")
		if line == "" {
			return h, nil
		}
		name, value, colon := strings.Cut(line, ":")
		if !ok || !colon || !isToken(name) || n == maxFields {
			return nil, bad(ReasonHead)
		}
		h.Add(name, strings.Trim(value, " \t"))
		text = rest
	}
}

// hostAgrees holds the Host field against the request's target (RFC 9112, 3.2). CONNECT may go without in HTTP/1.0.
func (r *request) hostAgrees(authority, version string) bool {
	list := r.header.Values("Host")
	if len(list) == 0 {
		return version == "HTTP/1.0"
	}
	want := fmt.Sprintf("%s:%d", r.to.host, r.to.port)
	got := strings.ToLower(list[0])
	return len(list) == 1 && (got == want || got == strings.ToLower(authority) || got == r.to.host && (r.to.port == 80 || r.method == http.MethodConnect))
}

// body says how long the body is, where exactly one length is given.
func (r *request) body() error {
	lengths, codings := r.header.Values("Content-Length"), r.header.Values("Transfer-Encoding")
	switch {
	case len(lengths)+len(codings) == 0:
		return nil
	case len(lengths)+len(codings) > 1 || r.method == http.MethodConnect:
		return bad(ReasonBody)
	case len(codings) == 1:
		if !strings.EqualFold(codings[0], "chunked") {
			return bad(ReasonBody)
		}
		r.length = -1
		return nil
	}
	n, err := strconv.ParseInt(lengths[0], 10, 64)
	if err != nil || strings.Trim(lengths[0], "0123456789") != "" {
		return bad(ReasonBody)
	}
	r.length = n
	return nil
}

// isToken holds for a name of RFC 9110, 5.6.2.
func isToken(s string) bool {
	const others = "!#$%&'*+-.^_`|~"
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return s != ""
}
