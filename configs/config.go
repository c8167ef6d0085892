package configs

import "time"

// Config is the whole configuration with defaults applied. A value that Load returned is never changed: share it freely.
//
// The tags say everything else about a key: default (YAML), doc, example (YAML), enum (values separated by |), min and max
// (in the key's own unit), zero (what 0 means where min is above it), maxitems, keys (of a map), required, format (formats in
// check.go), blank (empty list items are fine), secret, path (a file name, made absolute) and restart (a change waits for one).
type Config struct {
	DataDir       string        `yaml:"data_dir" path:"true" restart:"true" doc:"Folder of everything that is kept: database, agents' files, token. Made with mode 0700. A leading ~ is the home directory; a relative path starts at this file. Default: $XDG_DATA_HOME/parley, else ~/.local/share/parley." example:"~/.local/share/parley"`
	Gateway       Gateway       `yaml:"gateway" doc:"The one HTTP listener: WebChat, API, webhooks."`
	Models        []Model       `yaml:"models" doc:"Language models. With none, the gateway looks for ANTHROPIC_API_KEY, OPENAI_API_KEY (with OPENAI_BASE_URL), a local server on port 11434, 1234 or 8080, and else answers by itself, offline."`
	Transcription Transcription `yaml:"transcription" doc:"Voice messages and other recordings become text at a server that has OpenAI's /audio/transcriptions."`
	Agents        []Agent       `yaml:"agents" doc:"The durable workers. With none, there is one: assistant."`
	People        []Person      `yaml:"people" doc:"Humans known by name. Others come in by pairing."`
	Channels      []Channel     `yaml:"channels" doc:"Transport accounts. WebChat needs no entry: its channel is called webchat."`
	Routes        []Route       `yaml:"routes" doc:"Which agent and session answers where. All fields that are given must match; the most specific rule wins: thread, peer, server and role, server, team, channel, type, default agent."`
	Sessions      Sessions      `yaml:"sessions" doc:"How messages become sessions and turns."`
	Replies       Replies       `yaml:"replies" doc:"When something is shown, and what happens to late or doubtful answers."`
	Concurrency   Concurrency   `yaml:"concurrency" doc:"How much runs side by side."`
	Budgets       []Budget      `yaml:"budgets" doc:"Spending caps over all agents."`
	MCP           []MCP         `yaml:"mcp" restart:"true" doc:"MCP servers that agents may use by name."`
	Tools         ToolFilter    `yaml:"tools" doc:"Tools of all agents: the first of the layers that narrow."`
	Hooks         []Hook        `yaml:"hooks" doc:"Webhooks that start a turn."`
	Domains       []Domain      `yaml:"domains" doc:"Kinds of action that keep an owner of their own, who is asked before each."`
	Approvals     Approvals     `yaml:"approvals" doc:"Questions to people before a tool call."`
	Sandbox       Sandbox       `yaml:"sandbox" restart:"true" doc:"Where exec runs. Fixed by the operator: nothing in a chat can change it."`
	Retention     Retention     `yaml:"retention" doc:"How long things are kept."`

	// Path is the file it was read from, absolute; empty: there was none.
	Path string `yaml:"-"`

	reading `yaml:"-"`
}

// reading is what was seen while a configuration was read.
type reading struct {
	unread     []Problem         // what somebody has written that nothing reads
	revealed   []string          // what came from ${file:…}, for Secrets
	empty      bool              // the file has nothing in it
	overridden map[string]string // keys that the environment gives, with the variables
}

// Gateway is the HTTP listener.
type Gateway struct {
	Listen       string   `yaml:"listen" restart:"true" default:"127.0.0.1:8420" doc:"Address as host:port; port 0 takes a free one. A host that is not loopback is refused unless tls and token are set." example:"0.0.0.0:8443"`
	Token        Secret   `yaml:"token" default:"${PARLEY_TOKEN:-}" doc:"Bearer token of the API. When empty, one is made at the first start and kept in data_dir/token (mode 0600). At least 22 characters when listen is not loopback." example:"${file:/run/secrets/parley_token}"`
	AllowedHosts []string `yaml:"allowed_hosts" doc:"Host names, beside loopback, by which browsers may reach it; without port." example:"[\"parley.example.org\"]"`
	PublicURL    string   `yaml:"public_url" doc:"Where others reach it: scheme, host, port; https." example:"https://p.example.org"`
	// WritesPerSecond is of requests that change something.
	WritesPerSecond int `yaml:"writes_per_second" default:"500" min:"0" max:"1000000" doc:"Requests that change something which one person may send from one address in a second; for a while twenty times as many. More are refused with 429. 0: no limit."`
	TLS             TLS `yaml:"tls" doc:"Certificate of the listener."`
}

// TLS of the listener. Both or none.
type TLS struct {
	Cert string `yaml:"cert" path:"true" restart:"true" doc:"PEM file with the certificate chain, relative to this file." example:"cert.pem"`
	Key  string `yaml:"key" path:"true" restart:"true" doc:"PEM file with its private key, relative to this file." example:"key.pem"`
}

// Model is one language model.
type Model struct {
	Name            string `yaml:"name" required:"true" format:"name" doc:"Its name here, unique, without spaces." example:"claude"`
	API             string `yaml:"api" default:"openai" enum:"anthropic|openai|offline" doc:"Wire format of the server. offline is the built-in scripted responder."`
	BaseURL         string `yaml:"base_url" doc:"http(s) address of the server; that of openai includes its /v1. Default: https://api.anthropic.com or https://api.openai.com/v1." example:"http://127.0.0.1:11434/v1"`
	APIKey          Secret `yaml:"api_key" doc:"Credential. May be empty only for a server on loopback or api offline." example:"${OPENAI_API_KEY}"`
	Model           string `yaml:"model" doc:"The server's name for the model. Needed unless api is offline." example:"claude-sonnet-4-5"`
	ContextWindow   int    `yaml:"context_window" default:"128000" min:"1024" max:"10000000" doc:"Size of prompt and answer together, in tokens."`
	MaxOutputTokens int    `yaml:"max_output_tokens" default:"8192" min:"0" max:"1000000" doc:"Longest answer, in tokens; smaller than context_window. 0: the server's own limit; 8192 for anthropic, which wants one."`
	Vision          string `yaml:"vision" default:"auto" enum:"auto|yes|no" doc:"Whether the model is shown pictures and PDFs, or only told of them. auto: as its name says; with a name that says nothing they are shown until the server refuses."`

	// Found says how Discover found it; empty for a configured model.
	Found string `yaml:"-"`
}

// Transcription turns recordings into text.
type Transcription struct {
	Model    string `yaml:"model" doc:"The server's name for a model that transcribes. Empty: recordings are files and nothing more." example:"whisper-1"`
	BaseURL  string `yaml:"base_url" default:"https://api.openai.com/v1" doc:"http(s) address of the server, with its /v1." example:"http://127.0.0.1:8000/v1"`
	APIKey   Secret `yaml:"api_key" doc:"Credential. May be empty only for a server on loopback." example:"${OPENAI_API_KEY}"`
	Language string `yaml:"language" doc:"What is spoken, as an ISO 639-1 code; empty: the server finds out." example:"en"`
}

// Agent is a durable worker.
type Agent struct {
	ID             string      `yaml:"id" required:"true" format:"id" doc:"Its id, unique: letters, digits, - _ and ., at most 64. Names its folder and session keys, so it cannot be changed later." example:"assistant"`
	Name           string      `yaml:"name" doc:"What people see. Default: the id." example:"Assistant"`
	Default        bool        `yaml:"default" default:"false" doc:"Answers where no route matches. Exactly one agent is the default; with one agent, that one."`
	Model          string      `yaml:"model" doc:"Its primary model, by name. Default: the first of models." example:"claude"`
	Fallbacks      []string    `yaml:"fallbacks" doc:"Models to try, in order, when the primary cannot answer." example:"[\"local\"]"`
	Models         []string    `yaml:"models" doc:"Further models that it may be switched to." example:"[\"local\"]"`
	Workspace      string      `yaml:"workspace" path:"true" restart:"true" doc:"Folder of the agent's files, relative to this file. Default: data_dir/agents/<id>." example:"~/agents/assistant"`
	WorkspaceScope string      `yaml:"workspace_scope" default:"session" enum:"session|agent" doc:"Whether tools work in a folder for each session or one for the agent."`
	Roles          ModelRoles  `yaml:"roles" doc:"Models for special work, by name; empty: the primary."`
	Skills         []string    `yaml:"skills" doc:"Skills that are switched on, by name." example:"[\"release-notes\"]"`
	MCP            []string    `yaml:"mcp" doc:"MCP servers that it may use, by name." example:"[\"tracker\"]"`
	Folders        []Folder    `yaml:"folders" doc:"Directories of an owner that are put into the work folder, for owners only."`
	Memory         AgentMemory `yaml:"memory" doc:"What it remembers."`
	MaxSteps       int         `yaml:"max_steps" default:"20" min:"1" max:"1000" doc:"Model calls in one turn; then the turn ends and says so."`
	Heartbeat      Heartbeat   `yaml:"heartbeat" doc:"A regular look at HEARTBEAT.md; nothing happens while that file is empty."`
	May            May         `yaml:"may" doc:"What it is permitted beyond answering."`
	Tools          AgentTools  `yaml:"tools" doc:"Tool policy. Layers only narrow, and deny wins."`
	Budget         AgentBudget `yaml:"budget" doc:"Caps of this agent. 0: no cap."`
}

// ModelRoles are names of models for special work; empty: the agent's primary.
type ModelRoles struct {
	CheapCheck string `yaml:"cheap_check" doc:"First look of a task, before a dearer model." example:"local"`
	Strong     string `yaml:"strong" doc:"Hard questions." example:"claude"`
	Escalation string `yaml:"escalation" doc:"Taken when the cheap check says so." example:"claude"`
	Coding     string `yaml:"coding" doc:"Work on code." example:"claude"`
	Summarizer string `yaml:"summarizer" doc:"Compaction and summaries." example:"local"`
}

// Folder is an owner's own directory.
type Folder struct {
	Path string `yaml:"path" required:"true" path:"true" doc:"The directory, relative to this file; a leading ~ is the home directory." example:"~/notes"`
	As   string `yaml:"as" required:"true" format:"id" doc:"Its name inside the work folder." example:"notes"`
	Mode string `yaml:"mode" default:"ro" enum:"ro|rw" doc:"Read only, or also written."`
}

// AgentMemory says whether and how an agent remembers.
type AgentMemory struct {
	Enabled   bool   `yaml:"enabled" default:"true" doc:"Take and recall notes."`
	Embedding string `yaml:"embedding" doc:"Model, by name, that finds notes by meaning; empty: by words only." example:"embed"`
}

// Heartbeat is an agent's regular look around.
type Heartbeat struct {
	Every  time.Duration `yaml:"every" default:"30m" min:"1m" zero:"never" doc:"Time between two looks. 0: never."`
	Active string        `yaml:"active" format:"hours" doc:"Hours of the day, local time, as HH:MM-HH:MM; empty: always." example:"08:00-22:00"`
}

// May is what an agent is permitted beyond answering.
type May struct {
	Channels []string `yaml:"channels" default:"[\"*\"]" doc:"Channels, by name, that may be routed to it; * is all."`
	Deliver  []string `yaml:"deliver" doc:"Channels, by name, that its tasks and messages may be sent to beside the one they came from; * is all." example:"[\"tg\"]"`
	Tasks    bool     `yaml:"tasks" default:"true" doc:"May save tasks."`
	Ask      []string `yaml:"ask" doc:"Agents, by id, that it may ask for help; * is all." example:"[\"research\"]"`
}

// AgentTools is an agent's tool policy.
type AgentTools struct {
	Profile   string               `yaml:"profile" enum:"|minimal|messaging|coding|full" doc:"A ready-made list to narrow from: minimal (reads files), messaging (also sends files), coding (files, commands, sends files). full or empty: all tools."`
	Allow     []string             `yaml:"allow" default:"[\"*\"]" doc:"Tools that may be used; * at the end stands for any rest, group:NAME for a group."`
	Deny      []string             `yaml:"deny" doc:"Tools that may not be used; wins over allow." example:"[\"web_*\"]"`
	Exec      string               `yaml:"exec" default:"ask" enum:"deny|ask|allowlist|allow" doc:"Commands: never, after an approval, only those of exec_allow (others ask), or always. Owners only, unless by_role says more."`
	ExecAllow []ExecRule           `yaml:"exec_allow" doc:"Commands that need no approval at level allowlist. A program that takes its orders from files asks all the same, but for git where it reads."`
	ByRole    map[string]RoleTools `yaml:"by_role" keys:"owner|member|guest" doc:"Policy of people of one role."`
	Subagents Subagents            `yaml:"subagents" doc:"Helpers: child runs under their parent's rights."`
}

// ExecRule is one command that needs no approval. Only a line that parses to one simple command of literal words can match.
type ExecRule struct {
	Program string   `yaml:"program" required:"true" doc:"Program, by name as on the sandbox's path, or by absolute path." example:"git"`
	Args    []string `yaml:"args" blank:"true" doc:"Its arguments, word for word; * as the last stands for any rest." example:"[\"status\", \"*\"]"`
	Trusted bool     `yaml:"trusted" default:"false" doc:"You have looked: the program takes no orders (hooks, plugins, recipes, a configuration that names programs) from files of the work folder. Needed for programs that Parley does not know; those that do take orders ask all the same."`
}

// RoleTools is the policy of people of one role.
type RoleTools struct {
	Allow []string `yaml:"allow" default:"[\"*\"]" doc:"Tools that may be used, among those of the agent."`
	Deny  []string `yaml:"deny" doc:"Tools that may not be used."`
	Exec  string   `yaml:"exec" enum:"|deny|ask|allowlist|allow" doc:"Level of exec for this role, never wider than the agent's; empty: the agent's for owners, deny for others."`
}

// Subagents are the limits of helpers.
type Subagents struct {
	MemoryShareMode string        `yaml:"memoryShareMode" default:"handoff" enum:"isolated|handoff|inherit-readonly" doc:"What a helper sees of its parent's memory."`
	Depth           int           `yaml:"depth" default:"1" min:"0" max:"5" doc:"Generations of helpers. 0: no helpers."`
	Children        int           `yaml:"children" default:"5" min:"0" max:"100" doc:"Helpers of one run."`
	Concurrent      int           `yaml:"concurrent" default:"8" min:"1" max:"100" doc:"Helpers at work at once."`
	Archive         time.Duration `yaml:"archive" default:"60m" min:"1m" doc:"How long a finished helper can still be read."`
	Tools           ToolFilter    `yaml:"tools" doc:"Tools of helpers, among those of the agent."`
}

// ToolFilter narrows a list of tools.
type ToolFilter struct {
	Allow []string `yaml:"allow" doc:"Tools that may be used; * at the end stands for any rest, group:NAME for a group. Empty: all." example:"[\"read_file\"]"`
	Deny  []string `yaml:"deny" doc:"Tools that may not be used; wins over allow." example:"[\"exec\"]"`
}

// AgentBudget caps one agent. 0: no cap.
type AgentBudget struct {
	USDPerRun    float64 `yaml:"usd_per_run" default:"0" min:"0" doc:"US dollars of one run. A model without a known price is refused while this is set."`
	USDPerDay    float64 `yaml:"usd_per_day" default:"0" min:"0" doc:"US dollars of one day, UTC. A model without a known price is refused while this is set."`
	TokensPerRun int64   `yaml:"tokens_per_run" default:"0" min:"0" doc:"Tokens of one run, in and out."`
	RunsPerHour  int     `yaml:"runs_per_hour" default:"0" min:"0" doc:"Runs begun within 60 minutes."`
}

// Person is a human known by name.
type Person struct {
	ID       string    `yaml:"id" required:"true" format:"id" doc:"Their id, unique: letters, digits, - _ and ., at most 64." example:"ana"`
	Name     string    `yaml:"name" doc:"What others see. Default: the id." example:"Ana"`
	Role     string    `yaml:"role" default:"guest" enum:"owner|member|guest" doc:"What they may do; docs/rights.md is the table."`
	TZ       string    `yaml:"tz" format:"zone" doc:"Time zone, an IANA name; empty: the gateway's." example:"Europe/Berlin"`
	Accounts []Account `yaml:"accounts" doc:"Who they are on each channel."`
}

// Account is a person on one channel.
type Account struct {
	Channel string `yaml:"channel" required:"true" doc:"Channel, by name." example:"tg"`
	User    string `yaml:"user" required:"true" doc:"The network's immutable id of the user, never a name; in quotes." example:"\"123\""`
}

// Channel is one transport account. Options holds the adapter's own keys.
type Channel struct {
	Name   string     `yaml:"name" required:"true" format:"id" doc:"Its name, unique: letters, digits, - _ and ., at most 64." example:"tg"`
	Type   string     `yaml:"type" required:"true" doc:"The network." example:"telegram"`
	Stream string     `yaml:"stream" default:"edit" enum:"edit|off" doc:"Whether an answer grows while it is written, by editing the message."`
	Access Access     `yaml:"access" doc:"Who may speak here."`
	Tools  ToolFilter `yaml:"tools" doc:"Tools that may be used here, among those of the agent."`

	// Options is what the section's Options function made, filled in: a pointer to the adapter's own struct.
	Options any `yaml:"-" json:"-"`
}

// Access says who may speak on a channel.
type Access struct {
	DM             string   `yaml:"dm" default:"pairing" enum:"pairing|allowlist|open|disabled" doc:"Direct messages: strangers get a pairing code, only allow, anybody, nobody."`
	Groups         string   `yaml:"groups" default:"allowlist" enum:"allowlist|open|disabled" doc:"Groups and rooms: only those in allow, any, none."`
	Allow          []string `yaml:"allow" doc:"The network's ids of users (for direct messages) and rooms (for groups: everyone in an allowed room may speak); in quotes." example:"[\"123\", \"-100456\"]"`
	RequireMention bool     `yaml:"require_mention" default:"true" doc:"In groups, answer only when mentioned or answered to."`
}

// Route binds a place to an agent and session.
type Route struct {
	Type    string     `yaml:"type" doc:"A network: any channel of this type." example:"telegram"`
	Channel string     `yaml:"channel" doc:"A channel, by name." example:"tg"`
	Server  string     `yaml:"server" doc:"A Discord server's id." example:"\"900100\""`
	Roles   []string   `yaml:"roles" doc:"Ids of server roles, one of which the sender has; needs server." example:"[\"900200\"]"`
	Team    string     `yaml:"team" doc:"A Slack workspace's id." example:"T0123"`
	Kind    string     `yaml:"kind" enum:"|dm|group|room" doc:"The sort of conversation; empty: any."`
	Peer    string     `yaml:"peer" doc:"The network's id of a user, group or room; needs channel." example:"\"123\""`
	Thread  string     `yaml:"thread" doc:"The network's id of a thread or topic; needs peer." example:"\"42\""`
	Agent   string     `yaml:"agent" required:"true" doc:"Who answers, by id." example:"assistant"`
	Session string     `yaml:"session" format:"id" doc:"A named session of that agent; empty: the usual one." example:"watch"`
	Tools   ToolFilter `yaml:"tools" doc:"Tools that may be used where this rule chose the agent, among those of the agent."`
	Fanout  []string   `yaml:"fanout" maxitems:"3" doc:"Agents, by id, that get a copy and answer too; at most 3." example:"[\"research\"]"`
}

// Sessions says how messages become sessions and turns.
type Sessions struct {
	DMScope     string        `yaml:"dm_scope" default:"per-account-channel-peer" enum:"per-account-channel-peer|per-channel-peer|per-peer|main" doc:"What shares a session: an account's chat with one user; a network's; all chats of one person; everything (only while one owner is the only person)."`
	TurnTimeout time.Duration `yaml:"turn_timeout" default:"10m" min:"1s" max:"24h" doc:"Longest turn; waiting for an approval does not count."`
	Queue       Queue         `yaml:"queue" doc:"Messages that arrive during a turn."`
	Reset       Reset         `yaml:"reset" doc:"When a session begins again by itself. The earliest wins; empty: never."`
}

// Queue says what happens to messages that arrive during a turn.
type Queue struct {
	Mode     string        `yaml:"mode" default:"steer" enum:"steer|followup|collect|interrupt" doc:"Hand them to the running turn, answer one by one, answer all at once, or begin again."`
	Debounce time.Duration `yaml:"debounce" default:"700ms" min:"0s" max:"1m" doc:"Messages so close together are one, while nothing was shown or done yet."`
	Cap      int           `yaml:"cap" default:"20" min:"1" max:"10000" doc:"Messages that wait in one session."`
	Overflow string        `yaml:"overflow" default:"summarize" enum:"summarize|old|new" doc:"Beyond cap: keep a line of each, drop the oldest, or drop the newest."`
}

// Reset says when a session begins again by itself.
type Reset struct {
	Daily  string        `yaml:"daily" format:"clock" doc:"Time of day, local time, as HH:MM." example:"04:00"`
	Idle   time.Duration `yaml:"idle" default:"0" min:"1m" zero:"never" doc:"Time without a message. 0: never." example:"12h"`
	ByType []ResetRule   `yaml:"by_type" doc:"Other times for one sort of conversation."`
}

// ResetRule is Reset for one sort of conversation.
type ResetRule struct {
	Type  string        `yaml:"type" required:"true" enum:"dm|group|room|thread" doc:"The sort of conversation." example:"group"`
	Daily string        `yaml:"daily" format:"clock" doc:"Time of day, local time, as HH:MM." example:"04:00"`
	Idle  time.Duration `yaml:"idle" default:"0" min:"1m" zero:"never" doc:"Time without a message. 0: never." example:"2h"`
}

// Replies says when something is shown.
type Replies struct {
	FirstSign        time.Duration `yaml:"first_sign" default:"5s" min:"100ms" max:"1m" doc:"Something is shown by then."`
	TypingAfter      time.Duration `yaml:"typing_after" default:"400ms" min:"0s" max:"1m" doc:"Typing is shown from then on, so that a quick answer costs no extra call."`
	PlaceholderAfter time.Duration `yaml:"placeholder_after" default:"1500ms" min:"0s" max:"1m" doc:"A streamed answer's message is sent then."`
	StaleAfter       time.Duration `yaml:"stale_after" default:"24h" min:"1m" doc:"Older messages are set aside after an outage; the room is told, and /resume has them answered."`
	MaybeSent        string        `yaml:"maybe_sent" default:"mark" enum:"mark|drop" doc:"An answer that may have been sent, on a network that cannot be asked: send once more with a mark, or drop."`
}

// Concurrency says how much runs side by side.
type Concurrency struct {
	Turns    int `yaml:"turns" default:"512" min:"1" max:"100000" restart:"true" doc:"Turns at once. One person has at most half of them, and a quarter when others need theirs."`
	PerModel int `yaml:"per_model" default:"64" min:"1" max:"100000" doc:"Calls of one model at once, shared among people as turns are."`
	Exec     int `yaml:"exec" default:"0" min:"0" max:"10000" restart:"true" doc:"Commands at once. 0: twice the processor cores."`
}

// Budget is a cap over all agents. 0: no cap.
type Budget struct {
	Scope        string  `yaml:"scope" required:"true" enum:"person|session|task|all" doc:"What it is counted for, each by itself." example:"person"`
	USDPerDay    float64 `yaml:"usd_per_day" default:"0" min:"0" doc:"US dollars of one day, UTC. 0: no cap. A model without a known price is refused while this is set."`
	TokensPerDay int64   `yaml:"tokens_per_day" default:"0" min:"0" doc:"Tokens of one day, UTC, in and out. 0: no cap."`
}

// MCP is one MCP server, started by command or reached by url.
type MCP struct {
	Name    string   `yaml:"name" required:"true" format:"id" doc:"Its name, unique; its tools are called mcp_<name>_<tool>." example:"tracker"`
	Command []string `yaml:"command" blank:"true" doc:"Program and arguments of a local server." example:"[\"tracker-mcp\", \"--stdio\"]"`
	URL     string   `yaml:"url" doc:"http(s) address of a remote server. Either this or command." example:"https://mcp.example.org/"`
	SHA256  string   `yaml:"sha256" format:"sha256" doc:"Hash of its tool list, 64 hex digits; a change switches the server off. Empty: pinned at first use." example:"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
}

// Hook is a webhook that starts a turn.
type Hook struct {
	Name    string `yaml:"name" required:"true" format:"id" doc:"Its name, unique, the last part of its address." example:"deploy"`
	Secret  Secret `yaml:"secret" doc:"Key of its HMAC signature, at least 16 characters. Without one the hook does not start." example:"${DEPLOY_SECRET}"`
	Agent   string `yaml:"agent" doc:"Who works on it, by id. Default: the default agent." example:"assistant"`
	Session string `yaml:"session" format:"id" doc:"A named session of that agent; empty: one by the hook's name." example:"deploys"`
}

// Domain is a kind of action that keeps an owner of its own.
type Domain struct {
	Name               string        `yaml:"name" required:"true" format:"id" doc:"Its name, unique." example:"payments"`
	Match              DomainMatch   `yaml:"match" doc:"Which tool calls belong to it. All fields that are given must match; at least one is."`
	Owner              DomainOwner   `yaml:"owner" doc:"Who may decide."`
	Handler            string        `yaml:"handler" default:"internal" enum:"internal|webhook|command|deny" doc:"Who is asked: a person here, another system by a signed POST, a program, or nobody."`
	URL                string        `yaml:"url" doc:"Address for handler webhook." example:"https://pay.example.org/approvals"`
	Secret             Secret        `yaml:"secret" doc:"Key of the signature for handler webhook, at least 16 characters." example:"${PAY_SECRET}"`
	Command            []string      `yaml:"command" blank:"true" doc:"Program and arguments for handler command: JSON on its input, exit code 0 approves." example:"[\"/usr/local/bin/pay-approve\"]"`
	TTL                time.Duration `yaml:"ttl" default:"10m" min:"10s" max:"24h" doc:"How long the question stands."`
	SingleUse          bool          `yaml:"single_use" default:"true" doc:"An approval is good for one call. Only true is allowed."`
	RequesterMayDecide bool          `yaml:"requester_may_approve" default:"false" doc:"The one who asked may approve."`
	OnExpiry           string        `yaml:"on_expiry" default:"deny" enum:"deny" doc:"What silence means."`
}

// DomainMatch says which tool calls belong to a domain.
type DomainMatch struct {
	Tools    []string `yaml:"tools" doc:"Tool names; * at the end stands for any rest." example:"[\"mcp_bank_*\"]"`
	Programs []string `yaml:"programs" doc:"Programs that exec would run, wherever they stand in the line; a line that computes its commands belongs to the domain too." example:"[\"terraform\"]"`
	Hosts    []string `yaml:"hosts" doc:"Hosts that a tool would reach." example:"[\"api.bank.example\"]"`
	MCP      []string `yaml:"mcp" doc:"MCP servers, by name." example:"[\"tracker\"]"`
}

// DomainOwner says who may decide.
type DomainOwner struct {
	People   []string `yaml:"people" doc:"People, by id." example:"[\"ana\"]"`
	Roles    []string `yaml:"roles" enum:"owner|member" doc:"Or anybody of these roles. Default, when people is empty too: owner."`
	Surfaces []string `yaml:"surfaces" doc:"Where: http, cli, or channel:NAME:PEER. Empty: anywhere." example:"[\"cli\"]"`
}

// Approvals are questions to people before a tool call.
type Approvals struct {
	Expire time.Duration `yaml:"expire" default:"30m" min:"10s" max:"168h" doc:"A question that nobody answers is a no after this."`
}

// Sandbox is where exec runs.
type Sandbox struct {
	Backend      string        `yaml:"backend" default:"ns" enum:"ns|none" doc:"ns: Linux namespaces; none: no exec at all."`
	MinTier      string        `yaml:"min_tier" default:"ns" enum:"ns" doc:"The weakest isolation that is accepted; below it there is no exec."`
	Network      string        `yaml:"network" default:"none" enum:"none|egress" doc:"No network, or only the hosts of egress through a proxy."`
	Egress       []string      `yaml:"egress" doc:"Hosts as name:port that commands may reach when network is egress; *.name is any name below." example:"[\"api.example.org:443\"]"`
	Timeout      time.Duration `yaml:"timeout" default:"60s" min:"1s" max:"1h" doc:"Longest command."`
	Memory       Size          `yaml:"memory" default:"512MiB" min:"16MiB" doc:"Memory of one command with all its children."`
	ControlPaths []string      `yaml:"control_paths" doc:"Names of files and folders in owners' folders that agents may read and never write, beside the built-in ones (docs/sandbox.md): programs of this machine take orders from them. * stands for any characters." example:"[\"Justfile\", \"*.mk\"]"`
	Processes    int           `yaml:"processes" default:"256" min:"1" max:"65536" doc:"Processes and threads of one command."`
	WorkSize     Size          `yaml:"work_size" default:"2GiB" min:"16MiB" doc:"What one work folder may hold, by all commands, tools and files together: blocks on the disk, and 4 KiB for each file and folder."`
	WorkFiles    int           `yaml:"work_files" default:"100000" min:"1000" max:"10000000" doc:"Files and folders in one work folder."`
	DiskFloor    Size          `yaml:"disk_floor" default:"0B" min:"16MiB" zero:"256MiB, or a quarter of a disk smaller than 320MiB" doc:"What stays free on a disk for the gateway itself: below it and a reserve, of 64MiB or what was written in the last tenth of a second, nothing of agents and people is written. 0: 256MiB, or a quarter of a disk smaller than 320MiB."`
}

// Retention says how long things are kept.
type Retention struct {
	Runs        time.Duration `yaml:"runs" default:"90d" min:"1d" zero:"for ever" doc:"Runs and their steps. 0: for ever."`
	Transcripts time.Duration `yaml:"transcripts" default:"0" min:"1d" zero:"for ever" doc:"Text of messages and answers. 0: for ever."`
}
