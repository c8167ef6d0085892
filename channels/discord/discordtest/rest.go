package discordtest

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// apiError is a refusal, https://discord.com/developers/docs/topics/opcodes-and-status-codes#json.
type apiError struct {
	status, code int
	text         string
	errors       obj // of 50035
}

func refuse(status, code int, text string) *apiError {
	return &apiError{status: status, code: code, text: text}
}

var (
	errUnauthorized = refuse(401, 0, "401: Unauthorized")
	errNotFound     = refuse(404, 0, "404: Not Found")
	errMethod       = refuse(405, 0, "405: Method Not Allowed")
	errChannel      = refuse(404, 10003, "Unknown Channel")
	errGuild        = refuse(404, 10004, "Unknown Guild")
	errMember       = refuse(404, 10007, "Unknown Member")
	errMessage      = refuse(404, 10008, "Unknown Message")
	errUser         = refuse(404, 10013, "Unknown User")
	errEmoji        = refuse(400, 10014, "Unknown Emoji")
	errWebhook      = refuse(404, 10015, "Unknown Webhook")
	errInteraction  = refuse(404, 10062, "Unknown interaction")
	errLarge        = refuse(413, 40005, "Request entity too large")
	errAcked        = refuse(400, 40060, "Interaction has already been acknowledged.")
	errAccess       = refuse(403, 50001, "Missing Access")
	errNotAuthor    = refuse(403, 50005, "Cannot edit a message authored by another user")
	errEmpty        = refuse(400, 50006, "Cannot send an empty message")
	errCannotDM     = refuse(403, 50007, "Cannot send messages to this user")
	errPermissions  = refuse(403, 50013, "Missing Permissions")
	errBulk         = refuse(400, 50016, "Provided too few or too many messages to delete. Must provide at least 2 and fewer than 100 messages to delete")
	errSystem       = refuse(403, 50021, "Cannot execute action on a system message")
	errToken        = refuse(401, 50027, "Invalid Webhook Token")
	errTooOld       = refuse(400, 50034, "You can only bulk delete messages that are under 14 days old.")
	errJSON         = refuse(400, 50109, "The request body contains invalid JSON.")
	errOldEdits     = refuse(429, 30046, "Maximum number of edits to messages older than 1 hour reached. Try again later.")
	errHasThread    = refuse(400, 160004, "A thread has already been created for this message")
)

// form is 50035, with the place of the fault such as "content" or "components.0.components.5".
func form(place, code, text string) *apiError {
	at := obj{"_errors": []obj{{"code": code, "message": text}}}
	parts := strings.Split(place, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		at = obj{parts[i]: at}
	}
	return &apiError{400, 50035, "Invalid Form Body", at}
}

func tooLong(place string, most int) *apiError {
	return form(place, "BASE_TYPE_MAX_LENGTH", "Must be "+strconv.Itoa(most)+" or fewer in length.")
}

func required(place string) *apiError {
	return form(place, "BASE_TYPE_REQUIRED", "This field is required")
}

// call is one request.
type call struct {
	s     *Server
	r     *http.Request
	args  map[string]string // of the path
	body  []byte            // JSON
	files []File
	// status of the answer when there is no body; 0: 204.
	status int
}

// route is a method and path. Its run holds s.mu and returns what is answered; nil: no body.
type route struct {
	name  string // "POST /channels/{channel}/messages"
	parts []string
	run   func(*call) (any, *apiError)
	limit limit
	open  bool // no bot token is asked for: the path carries its own, or everybody may know
}

func table() []route {
	var all []route
	add := func(name string, run func(*call) (any, *apiError), l limit) {
		_, path, _ := strings.Cut(name, " ")
		all = append(all, route{name: name, parts: strings.Split(path, "/")[1:], run: run, limit: l, open: path == "/gateway" || strings.Contains(path, "{token}")})
	}
	common, writes := limit{50, 1}, limit{5, 5}
	add("GET /gateway", getGateway, common)
	add("GET /gateway/bot", getGatewayBot, common)
	add("GET /users/@me", getMe, common)
	add("GET /users/@me/guilds", myGuilds, common)
	add("POST /users/@me/channels", openDM, limit{10, 10})
	add("GET /users/{user}", getUser, common)
	add("GET /applications/@me", getApp, common)
	add("GET /oauth2/applications/@me", getApp, common)
	for _, scope := range []string{"", "/guilds/{guild}"} {
		add("GET /applications/{app}"+scope+"/commands", listCommands, common)
		add("PUT /applications/{app}"+scope+"/commands", overwriteCommands, writes)
		add("POST /applications/{app}"+scope+"/commands", createCommand, writes)
		add("DELETE /applications/{app}"+scope+"/commands/{command}", deleteCommand, writes)
	}
	add("GET /channels/{channel}", getChannel, common)
	add("GET /channels/{channel}/messages", listMessages, limit{5, 5})
	add("POST /channels/{channel}/messages", createMessage, writes)
	add("POST /channels/{channel}/messages/bulk-delete", bulkDelete, writes)
	add("GET /channels/{channel}/messages/{message}", getMessage, common)
	add("PATCH /channels/{channel}/messages/{message}", editMessage, writes)
	add("DELETE /channels/{channel}/messages/{message}", deleteMessage, limit{5, 1})
	add("PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me", putReaction, limit{1, 0.25})
	add("DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me", dropReaction, limit{1, 0.25})
	add("GET /channels/{channel}/messages/{message}/reactions/{emoji}", listReactions, common)
	add("POST /channels/{channel}/messages/{message}/threads", threadFromMessage, writes)
	add("POST /channels/{channel}/threads", startThread, writes)
	add("PUT /channels/{channel}/thread-members/@me", joinThread, common)
	add("POST /channels/{channel}/typing", typing, writes)
	add("GET /guilds/{guild}", getGuild, common)
	add("GET /guilds/{guild}/channels", guildChannels, common)
	add("GET /guilds/{guild}/roles", guildRoles, common)
	add("GET /guilds/{guild}/members", guildMembers, common)
	add("GET /guilds/{guild}/members/{user}", guildMember, common)
	add("GET /guilds/{guild}/threads/active", activeThreads, common)
	add("POST /interactions/{interaction}/{token}/callback", callback, limit{})
	add("POST /webhooks/{app}/{token}", followUp, writes)
	add("GET /webhooks/{app}/{token}/messages/{message}", getFollowUp, writes)
	add("PATCH /webhooks/{app}/{token}/messages/{message}", editFollowUp, writes)
	add("DELETE /webhooks/{app}/{token}/messages/{message}", deleteFollowUp, writes)
	return all
}

// find gives the route of a request, its arguments, and whether another method of its path exists.
func (s *Server) find(method string, parts []string) (found *route, args map[string]string, other bool) {
next:
	for i := range s.routes {
		rt := &s.routes[i]
		if len(rt.parts) != len(parts) {
			continue
		}
		got := map[string]string{}
		for j, p := range rt.parts {
			switch {
			case strings.HasPrefix(p, "{"):
				got[strings.Trim(p, "{}")] = parts[j]
			case p != parts[j]:
				continue next
			}
		}
		if strings.HasPrefix(rt.name, method+" ") {
			return rt, got, false
		}
		other = true
	}
	return nil, nil, other
}

// serve answers /api/v9, /api/v10, the gateway and the CDN.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	switch {
	case path == "/gateway" || path == "/gateway/" || path == "/resume" || path == "/resume/":
		s.serveGateway(w, r)
		return
	case strings.HasPrefix(path, "/attachments/"):
		s.serveFile(w, r)
		return
	}
	rest, ok := strings.CutPrefix(path, "/api/v10/")
	if !ok {
		rest, ok = strings.CutPrefix(path, "/api/v9/")
	}
	if !ok {
		s.refuse(w, errNotFound)
		return
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		if u, err := url.PathUnescape(p); err == nil {
			parts[i] = u
		}
	}
	rt, args, other := s.find(r.Method, parts)
	if rt == nil {
		if other {
			s.refuse(w, errMethod)
			return
		}
		s.refuse(w, errNotFound)
		return
	}
	s.serveRoute(w, r, rt, args)
}

func (s *Server) serveRoute(w http.ResponseWriter, r *http.Request, rt *route, args map[string]string) {
	s.mu.Lock()
	s.calls[rt.name]++
	hit := s.faults.Take(rt.name)
	s.watch.Changed()
	s.mu.Unlock()
	if !hit.Before(r, func(f Fault) { s.answer(w, f) }) {
		return
	}
	c := &call{s: s, r: r, args: args}
	fail := c.read()
	s.mu.Lock()
	if fail == nil && !rt.open && (s.revoked || r.Header.Get("Authorization") != "Bot "+s.opts.Token) {
		fail = errUnauthorized
	}
	if fail == nil && !s.opts.NoLimits {
		fail = s.pace(w, rt, args)
	}
	var out any
	if fail == nil {
		out, fail = rt.run(c)
	}
	body, err := json.Marshal(out)
	s.watch.Changed()
	s.mu.Unlock()
	if err != nil {
		panic(err) // of values that are made here
	}
	hit.After(w, body)
	switch {
	case fail != nil:
		s.refuse(w, fail)
	case out == nil && c.status == 0:
		w.WriteHeader(http.StatusNoContent)
	default:
		if c.status != 0 {
			writeJSON(w, c.status, body)
			return
		}
		writeJSON(w, http.StatusOK, body)
	}
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

func (s *Server) refuse(w http.ResponseWriter, e *apiError) {
	o := obj{"message": e.text, "code": e.code}
	if e.errors != nil {
		o["errors"] = e.errors
	}
	if e.status == http.StatusTooManyRequests {
		if after := w.Header().Get("Retry-After"); after != "" {
			seconds, _ := strconv.ParseFloat(w.Header().Get("X-Fake-Retry-After"), 64) // of this server's own making
			w.Header().Del("X-Fake-Retry-After")
			o["retry_after"], o["global"] = seconds, w.Header().Get("X-RateLimit-Global") == "true"
		}
		if e.code == 0 {
			delete(o, "code")
		}
	}
	body, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers only
	}
	writeJSON(w, e.status, body)
}

// read takes the body: JSON, or multipart with payload_json and files[n]
// (https://discord.com/developers/docs/reference#uploading-files).
func (c *call) read() *apiError {
	if c.r.Body == nil || c.r.Method == http.MethodGet || c.r.Method == http.MethodDelete {
		return nil
	}
	kind, args, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" {
		return c.multipart(multipart.NewReader(c.r.Body, args["boundary"]))
	}
	body, err := io.ReadAll(io.LimitReader(c.r.Body, 8<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the client left
	}
	if len(body) == 0 {
		return nil
	}
	if kind != "application/json" {
		return refuse(400, 50035, "Invalid Form Body")
	}
	if !json.Valid(body) {
		return errJSON
	}
	c.body = body
	return nil
}

func (c *call) multipart(mr *multipart.Reader) *apiError {
	names := map[string]File{}
	var order []string
	for {
		part, err := mr.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the client left
		}
		data, err := io.ReadAll(io.LimitReader(part, c.s.opts.Upload+1))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if int64(len(data)) > c.s.opts.Upload {
			return errLarge
		}
		switch {
		case part.FormName() == "payload_json":
			if !json.Valid(data) {
				return errJSON
			}
			c.body = data
		case part.FileName() != "":
			names[part.FormName()] = File{Name: part.FileName(), MIME: part.Header.Get("Content-Type"), Data: data}
			order = append(order, part.FormName())
		}
	}
	if len(order) > 10 {
		return form("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	}
	for _, name := range order {
		c.files = append(c.files, names[name])
	}
	return nil
}

// decode reads the JSON body into v.
func (c *call) decode(v any) *apiError {
	if len(c.body) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, v); err != nil {
		return form("_", "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType")
	}
	return nil
}

func (c *call) query(key string) string { return c.r.URL.Query().Get(key) }
