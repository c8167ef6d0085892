package configs

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/configs/origin"
	"parley/workspace/lazy"
)

// The channels that are always there, each with its network of one name: the page in the browser, and what comes over HTTP
// from programs and the terminal.
const (
	WebChat = "webchat"
	API     = "api"
)

// minToken is the length that a token needs where strangers can reach the listener: 128 bits in base64.
const minToken = 22

// Validate checks a configuration that was made in code as Load checks a file. The error is a *Error.
func (c *Config) Validate() error {
	r := newReport(c.Path, false)
	r.checkTags(c)
	r.checkRules(c)
	return r.err()
}

// rules holds the parts of a configuration against each other.
type rules struct {
	*report
	*Config
}

func (r *report) checkRules(c *Config) {
	x := rules{r, c}
	x.gateway()
	x.models()
	x.transcription()
	x.agents()
	x.channels()
	x.people()
	x.routes()
	x.rest()
	x.domains()
	x.tools()
	x.folders()
}

// unique reports names that stand twice in a list. Case does not tell two names apart: they become folders and words in chats.
func (x rules) unique(list, field string, values []string) {
	first := map[string]int{}
	for i, value := range values {
		folded := strings.ToLower(value)
		if j, twice := first[folded]; twice && value != "" {
			x.add(key(item(list, i), field), "%s is also that of %s: each needs its own", quote(value), item(list, j))
			continue
		}
		first[folded] = i
	}
}

// nameOf is the key that names the items of a list.
func nameOf(list string) string {
	if list == "agents" || list == "people" {
		return "id"
	}
	return "name"
}

// refer reports a name that is not in the list it refers to. An empty name is none.
func (x rules) refer(path, name, what, list string, known []string) {
	if name == "" || slices.Contains(known, name) || x.failed[path] || x.broken(list, nameOf(list)) {
		return
	}
	x.add(path, "there is no %s called %s, %s", what, x.quote(path, name), didYouMean(name, known))
}

// referAll is refer for a list, each name once. star allows "*".
func (x rules) referAll(path string, names []string, what, list string, known []string, star bool) {
	for i, name := range names {
		at := item(path, i)
		if slices.Index(names, name) < i {
			x.add(at, "%s stands twice in this list", x.quote(at, name))
		}
		if !star || name != "*" {
			x.refer(at, name, what, list, known)
		}
	}
}

func collect[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = name(v)
	}
	return names
}

func (x rules) modelNames() []string {
	return collect(x.Models, func(m Model) string { return m.Name })
}
func (x rules) agentIDs() []string { return collect(x.Agents, func(a Agent) string { return a.ID }) }
func (x rules) mcpNames() []string { return collect(x.MCP, func(m MCP) string { return m.Name }) }
func (x rules) channelNames() []string {
	return append(collect(x.Channels, func(c Channel) string { return c.Name }), WebChat)
}

// gateway: who can reach the listener, and with what (T01).
func (x rules) gateway() {
	g := x.Gateway
	if (g.TLS.Cert == "") != (g.TLS.Key == "") {
		x.add("gateway.tls", "needs both cert and key, or none")
	}
	for i, host := range g.AllowedHosts {
		if strings.ContainsAny(host, "/:* \t@") {
			at := item("gateway.allowed_hosts", i)
			x.add(at, "must be a host name alone, without scheme, port or *, not %s", x.quote(at, host))
		}
	}
	if _, wrong := origin.Read(g.PublicURL); wrong != "" {
		x.add("gateway.public_url", "%s", wrong)
	}
	host, port, err := net.SplitHostPort(g.Listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		x.add("gateway.listen", "must be an address such as 127.0.0.1:8420, not %s", x.quote("gateway.listen", g.Listen))
		return
	}
	if Loopback(host) {
		return
	}
	var missing []string
	if g.TLS.Cert == "" && g.TLS.Key == "" {
		missing = append(missing, "gateway.tls.cert and gateway.tls.key")
	}
	if g.Token == "" {
		missing = append(missing, "gateway.token")
	}
	if len(missing) > 0 {
		x.add("gateway.listen", "%s can be reached from other machines, which needs %s; or listen on 127.0.0.1",
			x.quote("gateway.listen", g.Listen), strings.Join(missing, " and "))
	}
	if g.Token != "" && len(g.Token) < minToken {
		x.add("gateway.token", "is too short for a listener that other machines can reach: it needs %d characters", minToken)
	}
}

// Loopback says whether a host can be reached from this machine only. A name other than localhost cannot be relied on.
func Loopback(host string) bool { return origin.Loopback(host) }

func (x rules) models() {
	x.unique("models", "name", x.modelNames())
	for i, m := range x.Models {
		at := item("models", i)
		if m.MaxOutputTokens >= m.ContextWindow && !x.failed[key(at, "context_window")] {
			x.add(key(at, "max_output_tokens"), "must be smaller than context_window, %d", m.ContextWindow)
		}
		if m.API == "offline" || x.failed[key(at, "api")] {
			continue
		}
		if m.Model == "" {
			x.add(key(at, "model"), "is required: the server's name for the model, such as claude-sonnet-4-5")
		}
		local := x.address(key(at, "base_url"), m.BaseURL)
		if m.APIKey == "" && !local {
			x.add(key(at, "api_key"), "is empty: give the credential of %s, for instance as ${%s_API_KEY}", m.Name, strings.ToUpper(m.API))
		}
	}
}

func (x rules) transcription() {
	t := x.Transcription
	if t.Model == "" {
		return
	}
	if local := x.address("transcription.base_url", t.BaseURL); t.APIKey == "" && !local {
		x.add("transcription.api_key", "is empty: give the credential of the server, for instance as ${OPENAI_API_KEY}")
	}
}

// address checks an http(s) address and says whether it is on loopback. It is never quoted: it may hold a password.
func (x rules) address(path, text string) (local bool) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		x.add(path, "must be an http or https address such as https://api.example.org/v1")
		return true // one complaint is enough
	case u.User != nil:
		x.add(path, "may not hold a user or password")
	case u.Fragment != "":
		x.add(path, "may not hold a # part")
	}
	return Loopback(u.Hostname())
}

func (x rules) agents() {
	x.unique("agents", "id", x.agentIDs())
	models, agents, channels := x.modelNames(), x.agentIDs(), x.channelNames()
	var defaults []int
	for i, a := range x.Agents {
		at := item("agents", i)
		if a.Default {
			defaults = append(defaults, i)
		}
		x.refer(key(at, "model"), a.Model, "model", "models", models)
		x.referAll(key(at, "fallbacks"), a.Fallbacks, "model", "models", models, false)
		x.referAll(key(at, "models"), a.Models, "model", "models", models, false)
		for path, name := range map[string]string{"roles.cheap_check": a.Roles.CheapCheck, "roles.strong": a.Roles.Strong, "roles.escalation": a.Roles.Escalation,
			"roles.coding": a.Roles.Coding, "roles.summarizer": a.Roles.Summarizer, "memory.embedding": a.Memory.Embedding} {
			x.refer(key(at, path), name, "model", "models", models)
		}
		x.referAll(key(at, "mcp"), a.MCP, "server", "mcp", x.mcpNames(), false)
		x.referAll(key(at, "may.channels"), a.May.Channels, "channel", "channels", channels, true)
		x.referAll(key(at, "may.deliver"), a.May.Deliver, "channel", "channels", channels, true)
		x.referAll(key(at, "may.ask"), a.May.Ask, "agent", "agents", agents, true)
		if a.Model != "" && slices.Contains(a.Fallbacks, a.Model) {
			x.add(key(at, "fallbacks"), "hold %s, which is the primary model already", quote(a.Model))
		}
		x.unique(key(at, "folders"), "as", collect(a.Folders, func(f Folder) string { return f.As }))
	}
	x.oneDefault(defaults)
}

func (x rules) oneDefault(defaults []int) {
	switch {
	case x.broken("agents", "default"):
	case len(defaults) == 0 && len(x.Agents) > 0:
		x.add("agents", "none is the default: put default: true to the one that answers where no route matches")
	case len(defaults) > 1:
		for _, i := range defaults[1:] {
			x.add(key(item("agents", i), "default"), "%s is the default already: there is one", quote(x.Agents[defaults[0]].ID))
		}
	}
}

func (x rules) channels() {
	x.unique("channels", "name", collect(x.Channels, func(c Channel) string { return c.Name }))
	accounts := map[string]int{}
	for i, c := range x.Channels {
		at := item("channels", i)
		if c.Name == WebChat && c.Type != WebChat {
			x.add(key(at, "name"), "webchat is the built-in channel: choose another name")
		}
		x.options(at, c)
		for field, id := range credentials(c) {
			if j, twice := accounts[id]; twice {
				x.add(key(at, field), "is the same as that of %s: one account cannot be on two channels", item("channels", j))
				continue
			}
			accounts[id] = i
		}
	}
}

// options has the adapter judge its own keys, and the ids that its network would never send. An error that has
// Option() is about that key.
func (x rules) options(at string, c Channel) {
	if v, ok := c.Options.(interface{ Validate() error }); ok {
		for _, err := range unjoined(v.Validate()) {
			path := at
			var of interface {
				Option() string
				Unwrap() error
			}
			if errors.As(err, &of) {
				path, err = key(at, of.Option()), of.Unwrap()
			}
			x.add(path, "%s", err)
		}
	}
	for i, id := range c.Access.Allow {
		x.id(item(key(at, "access.allow"), i), c, id)
	}
}

// id checks a network's id, where the adapter knows how one looks. "*" and the empty text are others' business.
func (x rules) id(path string, c Channel, id string) {
	if v, ok := c.Options.(interface{ CheckID(id string) error }); ok && id != "" && id != "*" && !x.failed[path] {
		if err := v.CheckID(id); err != nil {
			x.add(path, "%s, not %s", err, x.quote(path, id))
		}
	}
}

// unjoined are the errors that were joined.
func unjoined(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

// credentials are the values that name a channel's account, by field. A token at another server is another account.
func credentials(c Channel) map[string]string {
	found := map[string]string{}
	options := optionsOf(c)
	if !options.IsValid() {
		return nil
	}
	server := ""
	for _, f := range fieldsOf(options.Type()) {
		v := options.FieldByIndex(f.index)
		if v.Kind() != reflect.String || v.String() == "" {
			continue
		}
		switch f.name {
		case "api_url":
			server = v.String()
		case "token", "bot_token":
			found[f.name] = v.String()
		}
	}
	for field, token := range found {
		found[field] = c.Type + "\x00" + server + "\x00" + token
	}
	return found
}

func (x rules) people() {
	x.unique("people", "id", collect(x.People, func(p Person) string { return p.ID }))
	owners := map[Account]string{}
	for i, p := range x.People {
		for j, a := range p.Accounts {
			at := item(key(item("people", i), "accounts"), j)
			x.refer(key(at, "channel"), a.Channel, "channel", "channels", x.channelNames())
			for _, c := range x.Channels {
				if c.Name == a.Channel {
					x.id(key(at, "user"), c, a.User)
				}
			}
			if other, twice := owners[a]; twice && a != (Account{}) {
				x.add(at, "user %s of %s belongs to %s already", x.quote(key(at, "user"), a.User), quote(a.Channel), quote(other))
			}
			owners[a] = p.ID
		}
	}
	if x.Sessions.DMScope == "main" && len(x.People) > 1 {
		x.add("sessions.dm_scope", "main puts everybody into one session: it is allowed only while one owner is the only person")
	}
	if x.Sessions.DMScope == "main" && len(x.People) == 1 && x.People[0].Role != "owner" {
		x.add("sessions.dm_scope", "main is allowed only while the only person is an owner")
	}
}

func (x rules) routes() {
	first := map[string]int{}
	for i, route := range x.Routes {
		at := item("routes", i)
		x.route(at, route)
		same := matchOf(route)
		if j, twice := first[same]; twice {
			x.add(at, "matches the same as %s: one of them would never be used", item("routes", j))
			continue
		}
		first[same] = i
	}
}

// matchOf is equal for two routes that match the same messages.
func matchOf(r Route) string {
	roles := slices.Sorted(slices.Values(r.Roles))
	return fmt.Sprintf("%q", append([]string{r.Type, r.Channel, r.Server, r.Team, r.Kind, r.Peer, r.Thread}, roles...))
}

func (x rules) route(at string, r Route) {
	x.refer(key(at, "agent"), r.Agent, "agent", "agents", x.agentIDs())
	x.referAll(key(at, "fanout"), r.Fanout, "agent", "agents", x.agentIDs(), false)
	x.refer(key(at, "channel"), r.Channel, "channel", "channels", x.channelNames())
	types := append(collect(x.Channels, func(c Channel) string { return c.Type }), WebChat)
	x.refer(key(at, "type"), r.Type, "channel of a type", "channels", types)
	if slices.Contains(r.Fanout, r.Agent) && r.Agent != "" {
		x.add(key(at, "fanout"), "holds %s, which answers already", quote(r.Agent))
	}
	for _, c := range x.Channels {
		if c.Name == r.Channel {
			x.id(key(at, "peer"), c, r.Peer)
		}
		if r.Channel != "" && c.Name == r.Channel && r.Type != "" && c.Type != r.Type {
			x.add(key(at, "type"), "is %s, but channel %s is of type %s: the route would never match", quote(r.Type), quote(c.Name), quote(c.Type))
		}
	}
	for _, a := range x.Agents {
		if may := a.May.Channels; a.ID == r.Agent && r.Channel != "" && !slices.Contains(may, "*") && !slices.Contains(may, r.Channel) {
			x.add(key(at, "agent"), "agent %s may not be used on channel %s: its may.channels does not hold it", quote(a.ID), quote(r.Channel))
		}
	}
	switch {
	case r.Thread != "" && r.Peer == "":
		x.add(key(at, "thread"), "needs peer: a thread's id is only known inside its room")
	case r.Peer != "" && r.Channel == "" && r.Type == "":
		x.add(key(at, "peer"), "needs channel or type: an id is only known on its network")
	case len(r.Roles) > 0 && r.Server == "":
		x.add(key(at, "roles"), "needs server: roles belong to one")
	case matchOf(r) == matchOf(Route{}):
		x.add(at, "matches everything: make its agent the default one instead")
	}
}

func (x rules) rest() {
	x.unique("mcp", "name", x.mcpNames())
	for i, m := range x.MCP {
		at := item("mcp", i)
		switch {
		case (len(m.Command) == 0) == (m.URL == ""):
			x.add(at, "needs either command or url")
		case m.URL != "":
			x.address(key(at, "url"), m.URL)
		case m.Command[0] == "":
			x.add(key(at, "command"), "names no program")
		}
	}
	x.unique("hooks", "name", collect(x.Hooks, func(h Hook) string { return h.Name }))
	for i, h := range x.Hooks {
		at := item("hooks", i)
		x.refer(key(at, "agent"), h.Agent, "agent", "agents", x.agentIDs())
		x.signingKey(key(at, "secret"), h.Secret)
	}
	x.unique("budgets", "scope", collect(x.Budgets, func(b Budget) string { return b.Scope }))
	x.unique("sessions.reset.by_type", "type", collect(x.Sessions.Reset.ByType, func(r ResetRule) string { return r.Type }))
	if x.Sandbox.Network == "none" && len(x.Sandbox.Egress) > 0 {
		x.add("sandbox.egress", "lists hosts, but network is none: set sandbox.network to egress")
	}
	for i, name := range x.Sandbox.ControlPaths {
		held, err := filepath.Match(strings.ToLower(name), "parley-held-00000000")
		switch at := item("sandbox.control_paths", i); {
		case name == "" || err != nil || strings.ContainsAny(name, `/\`) || strings.Trim(name, ". ") == "":
			x.add(at, "must be the name of a file or folder, without /, not %s", quote(name))
		case strings.Trim(name, "*?") == "" || held:
			x.add(at, "is %s, which fits every name", quote(name))
		}
	}
	for i, host := range x.Sandbox.Egress {
		at := item("sandbox.egress", i)
		name, port, err := net.SplitHostPort(host)
		n, perr := strconv.ParseUint(port, 10, 16)
		switch name = strings.TrimPrefix(name, "*."); {
		case err != nil || perr != nil || n == 0 || port[0] == '0' || name == "":
			x.add(at, "must be host:port, not %s", x.quote(at, host))
		case !hostName().MatchString(name) || addressLike().MatchString(name):
			x.add(at, "must name a host, not %s: addresses are never reached, and * only stands in front as *.name", x.quote(at, host))
		}
	}
}

// What the egress proxy takes for a name: labels of letters and digits; what ends in a number is an address to somebody.
var (
	hostName    = lazy.Regexp(`^([\pL\pN_]([\pL\pM\pN_-]{0,61}[\pL\pM\pN_])?)(\.[\pL\pN_]([\pL\pM\pN_-]{0,61}[\pL\pM\pN_])?)*$`)
	addressLike = lazy.Regexp(`(?i)(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

// signingKey: a webhook without a secret would let anybody in (T05).
func (x rules) signingKey(path string, s Secret) {
	switch {
	case s == "":
		x.add(path, "is empty: without a signature anybody could send")
	case len(s) < 16:
		x.add(path, "is too short: it needs 16 characters")
	}
}

func (x rules) domains() {
	x.unique("domains", "name", collect(x.Domains, func(d Domain) string { return d.Name }))
	people := collect(x.People, func(p Person) string { return p.ID })
	for i, d := range x.Domains {
		at := item("domains", i)
		if len(d.Match.Tools)+len(d.Match.Programs)+len(d.Match.Hosts)+len(d.Match.MCP) == 0 {
			x.add(key(at, "match"), "is empty: say which calls belong to it")
		}
		x.referAll(key(at, "match.mcp"), d.Match.MCP, "server", "mcp", x.mcpNames(), false)
		x.referAll(key(at, "owner.people"), d.Owner.People, "person", "people", people, false)
		for j, s := range d.Owner.Surfaces {
			if s != "http" && s != "cli" && !strings.HasPrefix(s, "channel:") {
				x.add(item(key(at, "owner.surfaces"), j), "must be http, cli or channel:NAME:PEER")
			}
		}
		if (d.Handler == "" || d.Handler == "internal") && x.deaf(d.Owner) {
			x.add(key(at, "owner.surfaces"), "let nobody decide: http and cli speak for %s, who is not an owner of this domain; add a channel, or name them", x.speaksFor())
		}
		if !d.SingleUse {
			x.add(key(at, "single_use"), "must be true: an approval is good for one call")
		}
		if d.Handler == "webhook" {
			x.address(key(at, "url"), d.URL)
			x.signingKey(key(at, "secret"), d.Secret)
		}
		if d.Handler == "command" && (len(d.Command) == 0 || d.Command[0] == "") {
			x.add(key(at, "command"), "is required: the program to ask")
		}
	}
}

// deaf says that nobody who owns a domain has one of its surfaces.
func (x rules) deaf(o DomainOwner) bool {
	if len(o.Surfaces) == 0 || slices.ContainsFunc(o.Surfaces, func(s string) bool { return s != "http" && s != "cli" }) || len(o.People)+len(o.Roles) == 0 {
		return false
	}
	return !slices.Contains(o.Roles, "owner") && !slices.Contains(o.People, x.speaksFor())
}

// speaksFor is the person for whom the gateway's token speaks, as the gateway works it out.
func (x rules) speaksFor() string {
	id, n := "", 0
	for _, p := range x.People {
		if p.Role == "owner" {
			id = p.ID
			n++
		}
	}
	if n != 1 {
		return "local"
	}
	return id
}

// folders: what an agent can write must not hold what steers or accuses it (T21), and two agents share no files.
func (x rules) folders() {
	owners := map[string]int{}
	for i, a := range x.Agents {
		at := item("agents", i)
		if a.Workspace != "" {
			if j, twice := owners[a.Workspace]; twice {
				x.add(key(at, "workspace"), "is also that of %s: agents share no files", item("agents", j))
			}
			owners[a.Workspace] = i
			if x.Path != "" && inside(x.Path, a.Workspace) {
				x.add(key(at, "workspace"), "holds this configuration file: the agent could change it")
			}
		}
		x.unique(key(at, "folders"), "as", collect(a.Folders, func(f Folder) string { return f.As }))
		for j, f := range a.Folders {
			path := key(item(key(at, "folders"), j), "path")
			if f.As == "inbox" {
				x.add(key(item(key(at, "folders"), j), "as"), "is where files that people send are put; take another name")
			}
			switch {
			case f.Path == "":
			case inside(x.DataDir, f.Path) || inside(f.Path, x.DataDir):
				x.add(path, "overlaps data_dir, where tokens and everybody's messages are kept")
			case x.Path != "" && inside(x.Path, f.Path) && f.Mode == "rw":
				x.add(path, "holds this configuration file: the agent could change it; use mode ro or another folder")
			default:
				for k, other := range x.Agents { // their files steer them
					if other.Workspace != "" && (inside(other.Workspace, f.Path) || inside(f.Path, other.Workspace)) {
						x.add(path, "overlaps the workspace of %s, whose files steer that agent", item("agents", k))
					}
				}
			}
		}
	}
}

// inside says whether path is dir or below it, by its name and by where links lead.
func inside(path, dir string) bool {
	return below(path, dir) || below(realPath(path), realPath(dir))
}

func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// realPath follows links as far as the path exists.
func realPath(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
