package workspace

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"parley/channels"
)

//go:embed templates/*.md
var templates embed.FS

var agentID = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// ErrAgentID says that an id has other than 1 to 64 characters of a–z, 0–9, "_" and "-".
var ErrAgentID = fmt.Errorf("agent id must be 1 to 64 of a-z, 0-9, _ and -: %w", ErrInvalid)

// Agent is an agent's home on disk: its control files, which tools never write, and the work folders below it.
type Agent struct {
	ID   AgentID
	Name string // for people; empty: the id
	Dir  string // absolute
}

// NewAgent is the agent's home: dir when the operator named one, else agents/<id> below the data directory.
func NewAgent(dataDir string, id AgentID, name, dir string) (Agent, error) {
	if !agentID.MatchString(string(id)) {
		return Agent{}, fmt.Errorf("agent %.80q: %w", id, ErrAgentID)
	}
	if dir == "" {
		dir = filepath.Join(dataDir, "agents", string(id))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Agent{}, fmt.Errorf("agent %s: folder: %w", id, err)
	}
	if name == "" {
		name = string(id)
	}
	return Agent{ID: id, Name: name, Dir: dir}, nil
}

// IdentityFiles are read into every prompt, in this order.
func IdentityFiles() []string {
	return []string{"AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", MemoryFile}
}

// MemoryFile is what people have written down for an agent.
const MemoryFile = "memory/MEMORY.md"

// Scaffolded is what Scaffold did, in order.
type Scaffolded struct {
	Created []string
	Kept    []string // were there before, whatever they hold
}

// Scaffold makes what is missing of the agent's files and folders (files 0600, folders 0700) and touches nothing
// that exists. It refuses a home that is a symbolic link, and goes on after a failure: the error joins them all.
func (a Agent) Scaffold() (Scaffolded, error) {
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return Scaffolded{}, fmt.Errorf("scaffold agent %s: %w", a.ID, err)
	}
	home, err := OpenRoot(a.Dir)
	if err != nil {
		return Scaffolded{}, fmt.Errorf("scaffold agent %s: %w", a.ID, err)
	}
	defer home.Close()
	var done Scaffolded
	var errs []error
	note := func(name string, created bool, err error) {
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("scaffold agent %s: %s: %w", a.ID, name, err))
		case created:
			done.Created = append(done.Created, name)
		default:
			done.Kept = append(done.Kept, name)
		}
	}
	for _, dir := range []string{"memory", "work"} {
		created, err := makeDir(home.root, dir)
		note(dir+"/", created, err)
	}
	for _, name := range IdentityFiles() {
		created, err := makeFile(home.root, name, a.template(name))
		note(name, created, err)
	}
	return done, errors.Join(errs...)
}

func (a Agent) template(name string) string {
	text, err := templates.ReadFile("templates/" + filepath.Base(name))
	if err != nil {
		panic(err) // the binary is built without a template that it names
	}
	return strings.NewReplacer("{{name}}", Line(a.Name, 80), "{{id}}", string(a.ID)).Replace(string(text))
}

func makeDir(home *os.Root, name string) (created bool, err error) {
	err = home.Mkdir(name, 0o700)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	fi, err := home.Lstat(name)
	if err == nil && !fi.IsDir() {
		err = fmt.Errorf("not a real directory: %w", ErrDenied)
	}
	return false, err
}

func makeFile(home *os.Root, name, text string) (created bool, err error) {
	f, err := home.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(text)
	return true, errors.Join(err, f.Close())
}

// Scopes of work folders, as configured.
const (
	WorkScopeSession = "session"
	WorkScopeAgent   = "agent"
)

// WorkDir is the folder in which the tools of a turn work: one for the agent (scope agent), one for the owner
// over all own DMs and local sessions, else one for the session over all its generations. at is where the turn was
// asked for; zero: by the API. A helper gets a scratch below its parent's. It is computed, not made.
func (a Agent) WorkDir(scope string, key Key, actor Actor, at channels.Address) string {
	parent := key
	parent.Helper = ""
	dir := filepath.Join(a.Dir, "work", workName(scope, parent, actor, at))
	if key.Helper != "" {
		dir = filepath.Join(dir, "helpers", shortHash(key.Helper))
	}
	return dir
}

func workName(scope string, key Key, actor Actor, at channels.Address) string {
	switch {
	case scope == WorkScopeAgent:
		return "agent"
	case actor.Role == Owner && actor.Person != "" && Private(key, actor, at):
		if agentID.MatchString(string(actor.Person)) {
			return "owner-" + string(actor.Person)
		}
		return "owner-" + shortHash(string(actor.Person))
	}
	return shortHash(key.String())
}

// Private says that the actor alone speaks and reads in the session: an own DM or an own local session, never a group.
// An owner may write into anybody's session; that does not make it theirs, for its person reads what comes of it.
func Private(key Key, actor Actor, at channels.Address) bool {
	switch key.Scope {
	case ScopeAddress, ScopePeer: // whose DM it is, is known by where the message came from
		return key.Kind == channels.DM && at.Kind == channels.DM && at.Network == key.Network && at.Peer == key.Peer
	case ScopePerson:
		return key.Person == actor.Person
	case ScopeMain:
		return true // only while one owner is the only person
	case ScopeLocal: // owners share theirs, all others' carry their person
		return !strings.Contains(key.Local, ":") || strings.HasPrefix(key.Local, string(actor.Person)+":")
	}
	return false
}

// Shares says whether an owner's folders are shown in a turn: to an owner, in a room or an own session. Another person's
// session is no place for them.
func Shares(key Key, actor Actor, at channels.Address) bool {
	if actor.Role != Owner || actor.Person == "" {
		return false
	}
	return Private(key, actor, at) || key.Kind == channels.Group || key.Kind == channels.Room
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:16]
}
