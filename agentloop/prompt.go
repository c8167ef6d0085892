package agentloop

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/tools"
	"parley/workspace"
)

//go:embed runtime.md
var runtimeText string

// Limits of the files in a prompt.
const (
	MaxFileChars  = 20_000  // of one identity file
	MaxFilesChars = 150_000 // of all
	fileBytes     = 1 << 20 // of a file that is read at all
	lookEvery     = time.Second
	keptPrompts   = 8 // tool sets of one agent whose prompt is kept
)

// Prompts builds the system part of prompts. It reads an agent's files once and looks for changes, by time and
// size, at most once a second, so that a message costs no file access. Safe for concurrent use; no goroutines.
type Prompts struct {
	Now func() time.Time
	Log *slog.Logger // nil: none
	// Hide takes secrets out of what is read; nil: none are known.
	Hide *workspace.Redactor

	mu     sync.Mutex
	agents map[workspace.AgentID]*identity
}

// PromptFile says what of an identity file is in the prompt.
type PromptFile struct {
	Name  string
	Chars int    // in the prompt
	Of    int    // in the file
	Note  string // why it is cut or missing; empty: it is whole
	text  string
	stamp stamp
}

type stamp struct {
	size int64
	mod  time.Time
}

// identity is what is kept of one agent. Its lock is held while files are read, so that others wait for the same.
type identity struct {
	mu     sync.Mutex
	looked time.Time
	files  []PromptFile
	built  []built // newest last
}

type built struct {
	tools  []tools.Spec
	system string
}

// System is the byte-stable beginning of every prompt of the agent: runtime identity, its files each under its
// name, the tools in a line each. It holds no date and no fact of the host or the session.
func (p *Prompts) System(a workspace.Agent, specs []tools.Spec) string {
	id := p.identity(a)
	id.mu.Lock()
	defer id.mu.Unlock()
	p.refresh(a, id)
	for _, b := range id.built {
		if slices.EqualFunc(b.tools, specs, func(x, y tools.Spec) bool { return x.Name == y.Name && x.Description == y.Description }) {
			return b.system
		}
	}
	if len(id.built) == keptPrompts {
		id.built = slices.Delete(id.built, 0, 1)
	}
	system := compose(a, id.files, specs)
	id.built = append(id.built, built{tools: slices.Clone(specs), system: system})
	return system
}

// Files says what of each identity file is in the prompt, for /context.
func (p *Prompts) Files(a workspace.Agent) []PromptFile {
	id := p.identity(a)
	id.mu.Lock()
	defer id.mu.Unlock()
	p.refresh(a, id)
	return slices.Clone(id.files)
}

func (p *Prompts) identity(a workspace.Agent) *identity {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agents == nil {
		p.agents = map[workspace.AgentID]*identity{}
	}
	id := p.agents[a.ID]
	if id == nil {
		id = &identity{}
		p.agents[a.ID] = id
	}
	return id
}

// refresh reads the files again if any of them changed since the last look.
func (p *Prompts) refresh(a workspace.Agent, id *identity) {
	now := p.Now()
	if id.files != nil && now.Sub(id.looked) < lookEvery && !now.Before(id.looked) {
		return
	}
	id.looked = now
	home, err := workspace.OpenRoot(a.Dir)
	if err != nil {
		if p.Log != nil {
			p.Log.Error("agent's files cannot be opened", "agent", a.ID, "err", err)
		}
		if id.files == nil {
			id.files = []PromptFile{}
		}
		return // what was read before still holds
	}
	defer home.Close()
	if id.files != nil && !changed(home, id.files) {
		return
	}
	id.files, id.built = readFiles(home, p.Hide), nil
	for _, f := range id.files {
		if f.Note != "" && p.Log != nil {
			p.Log.Warn("identity file is not whole in the prompt", "agent", a.ID, "file", f.Name, "note", f.Note)
		}
	}
}

func changed(home *workspace.Root, files []PromptFile) bool {
	return len(files) == 0 || slices.ContainsFunc(files, func(f PromptFile) bool { return f.stamp != stampOf(home, f.Name) })
}

func stampOf(home *workspace.Root, name string) stamp {
	info, err := home.Stat(workspace.At(name))
	if err != nil {
		return stamp{size: -1}
	}
	return stamp{size: info.Size, mod: info.ModTime}
}

func readFiles(home *workspace.Root, hide *workspace.Redactor) []PromptFile {
	var files []PromptFile
	left := MaxFilesChars
	for _, name := range workspace.IdentityFiles() {
		f := PromptFile{Name: name, stamp: stampOf(home, name)} // before reading: a change in between is seen next time
		data, _, err := home.ReadFile(workspace.At(name), fileBytes)
		switch {
		case errors.Is(err, workspace.ErrNotFound):
			f.Note = "missing"
		case err != nil:
			f.Note = "cannot be read: " + err.Error()
		default:
			f.fill(strings.TrimSpace(hide.Redact(string(data))), min(left, MaxFileChars))
			left -= f.Chars
		}
		files = append(files, f)
	}
	return files
}

// fill takes at most limit characters of text and says what is missing.
func (f *PromptFile) fill(text string, limit int) {
	runes := []rune(strings.ToValidUTF8(text, "\uFFFD"))
	f.Of, f.Chars = len(runes), min(len(runes), limit)
	f.text = string(runes[:f.Chars])
	if f.Chars < f.Of {
		f.Note = fmt.Sprintf("cut: the first %d of %d characters", f.Chars, f.Of)
	}
}

func compose(a workspace.Agent, files []PromptFile, specs []tools.Spec) string {
	var b strings.Builder
	b.WriteString(strings.NewReplacer("{{name}}", workspace.Line(a.Name, 80), "{{id}}", string(a.ID)).Replace(runtimeText))
	for _, f := range files {
		if f.text == "" && (f.Note == "" || f.Note == "missing") {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", f.Name, f.text)
		if f.Note != "" {
			fmt.Fprintf(&b, "[%s]\n", f.Note)
		}
	}
	b.WriteString("\n## Tools\n\n")
	if len(specs) == 0 {
		b.WriteString("You have no tools in this conversation.\n")
	}
	for _, s := range specs {
		fmt.Fprintf(&b, "- %s: %s\n", s.Name, firstSentence(s.Description))
	}
	return b.String()
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if first, _, more := strings.Cut(s, ". "); more {
		s = first + "."
	}
	return workspace.Line(s, 200)
}

// Moment is what changes from turn to turn.
type Moment struct {
	Now       time.Time
	Zone      *time.Location // of the requester; nil: UTC
	Network   string
	Channel   string // as configured
	PeerKind  string
	Room      string // a title: a label
	Session   workspace.Key
	Requester workspace.Actor
	Notes     []Note
}

// Note is something remembered, with where it comes from. It is data.
type Note struct {
	Source string
	Text   string
}

// Volatile is the part of the prompt that stands behind everything that providers cache.
func Volatile(m Moment) string {
	zone := m.Zone
	if zone == nil {
		zone = time.UTC
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Now\n\n- Date: %s (%s)\n", m.Now.In(zone).Format("Monday, 2006-01-02 15:04"), zone)
	where := m.Network
	if where == "" {
		where = "local"
	}
	if m.Channel != "" && m.Channel != where {
		where += " (" + m.Channel + ")"
	}
	if m.PeerKind != "" {
		where += ", " + m.PeerKind
	}
	if m.Room != "" {
		where += fmt.Sprintf(" %q", workspace.Line(m.Room, 80))
	}
	fmt.Fprintf(&b, "- Channel: %s\n", where)
	if m.Session.Name != "" {
		fmt.Fprintf(&b, "- Session: %q\n", workspace.Line(m.Session.Name, 80))
	}
	fmt.Fprintf(&b, "- Asked by: %s\n", workspace.Who(m.Requester.Person, m.Requester.Role, m.Requester.Name))
	for _, n := range m.Notes {
		b.WriteString("\n" + Outside("note: "+n.Source, workspace.Visible(n.Text)) + "\n")
	}
	return b.String()
}
