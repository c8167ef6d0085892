package api

import (
	"net/http"
	"time"

	"parley/gateway/api/limit"
	"parley/gateway/api/signin"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/workspace"
)

// LiveLine serves the live line to who asks. still says whether what let them in holds: a token changes, people sign out.
type LiveLine func(w http.ResponseWriter, r *http.Request, call control.Call, still func() error)

// browsers is how pages come in, and what they are told first.
type browsers struct {
	base
	guard  *signin.Guard
	limits *limit.Limits
	line   LiveLine
	owner  func() workspace.Actor
}

func (b browsers) routes() []route {
	return []route{
		{"POST /v1/sign-in", b.signIn, open | loose,
			operation{"page", "Exchange a one-time code for a cookie", "", codeRequest{}, one(204, nil), ""}},
		{"POST /v1/sign-in/codes", b.newCode, loose,
			operation{"page", "Make a way in for one browser", "", wire.NoBody{}, one(201, codeView{}), ""}},
		{"POST /v1/sign-out", b.signOut, loose, operation{"page", "End the sign-in that asks", "", wire.NoBody{}, one(204, nil), ""}},
		{"GET /v1/live", b.live, bare, operation{"page", "The live line, a WebSocket", "", nil, one(101, nil), ""}},
	}
}

type codeRequest struct {
	Code string `json:"code"` // from the link that the gateway prints
}

const maxOpenBody = 4 << 10 // bytes of a sign-in, which anybody may send

// signIn exchanges a code for a cookie.
func (b browsers) signIn(w http.ResponseWriter, r *http.Request) error {
	leave, err := b.limits.Bodies.Reserve(r, false, maxOpenBody)
	if err != nil {
		return err
	}
	defer leave()
	var req codeRequest
	r.Body = http.MaxBytesReader(w, r.Body, maxOpenBody)
	if err := wire.Decode(w, r, &req); err != nil {
		return err
	}
	cookie, err := b.guard.Redeem(r, req.Code)
	if err != nil {
		return err
	}
	if err := b.control.Operator.SignedIn(r.Context(), limit.Address(r.RemoteAddr)); err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// signOut ends the sign-in that asks.
func (b browsers) signOut(w http.ResponseWriter, r *http.Request) error {
	cookie, err := b.guard.End(r)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// codeView is a way in for one browser. The link carries the code where no server and no log sees it.
type codeView struct {
	Code    string    `json:"code"`
	Path    string    `json:"path"`                 // behind the gateway's address
	Public  string    `json:"public_url,omitempty"` // the whole link, for a browser elsewhere
	Expires time.Time `json:"expires"`
}

func (b browsers) newCode(w http.ResponseWriter, r *http.Request) error {
	if err := wire.Decode(w, r, &wire.NoBody{}); err != nil {
		return err
	}
	if err := b.control.Operator.Invited(r.Context(), b.call(r)); err != nil {
		return err
	}
	text, ends := b.guard.Invite(r)
	wire.Reply(w, http.StatusCreated, codeView{text, signin.PathOf(text), b.guard.Elsewhere(text), ends.UTC()})
	return nil
}

// live lets a page open its live line. What goes over it is package stream's; WebChat's adapter owns the connection.
func (b browsers) live(w http.ResponseWriter, r *http.Request) error {
	if b.line == nil {
		return wire.NoEndpoint()
	}
	call := b.call(r)
	leave, err := b.limits.Hold(call.Actor.Person)
	if err != nil {
		return err
	}
	defer leave()
	b.line(w, r, call, func() error {
		if b.owner().Person != call.Actor.Person { // another configuration has another owner
			return wire.Unauthorized()
		}
		return b.guard.Recheck(r)
	})
	return nil
}
