package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels"
)

func scaffolded(t *testing.T) Agent {
	t.Helper()
	a, err := NewAgent(t.TempDir(), "assistant", "Pepper", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Scaffold(); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestScaffoldMakesEveryFileOnce(t *testing.T) {
	t.Parallel()
	a, err := NewAgent(t.TempDir(), "assistant", "Pepper", "")
	if err != nil {
		t.Fatal(err)
	}
	done, err := a.Scaffold()
	want := "memory/ work/ AGENTS.md SOUL.md USER.md TOOLS.md IDENTITY.md memory/MEMORY.md"
	if got := strings.Join(done.Created, " "); err != nil || got != want || len(done.Kept) != 0 {
		t.Errorf("created %s, kept %v, %v", got, done.Kept, err)
	}
	err = filepath.WalkDir(a.Dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		perm := fs.FileMode(0o600)
		if d.IsDir() {
			perm = 0o700
		} else if text, err := os.ReadFile(p); err != nil || len(text) == 0 || strings.Contains(string(text), "{{") {
			t.Errorf("%s is empty or half filled: %v", p, err)
		}
		if fi.Mode().Perm() != perm {
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(filepath.Join(a.Dir, "IDENTITY.md")); !strings.Contains(string(text), "Name: Pepper") || !strings.Contains(string(text), "Id: assistant") {
		t.Errorf("identity: %s", text)
	}
	if done, err = a.Scaffold(); err != nil || len(done.Created) != 0 || strings.Join(done.Kept, " ") != want {
		t.Errorf("second time: %+v %v", done, err)
	}
}

func TestScaffoldKeepsWhatIsThereByteForByte(t *testing.T) {
	t.Parallel()
	a := scaffolded(t)
	mine := map[string]string{"AGENTS.md": "mine\r\n\x00", "SOUL.md": "", "memory/MEMORY.md": "fact"}
	for name, text := range mine {
		if err := os.WriteFile(filepath.Join(a.Dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(a.Dir, "USER.md")); err != nil {
		t.Fatal(err)
	}
	done, err := a.Scaffold()
	if err != nil || len(done.Created) != 1 || done.Created[0] != "USER.md" {
		t.Errorf("%+v %v", done, err)
	}
	for name, text := range mine {
		got, err := os.ReadFile(filepath.Join(a.Dir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

func TestScaffoldDoesNotFollowLinksOut(t *testing.T) {
	t.Parallel()
	data, outside := t.TempDir(), t.TempDir()
	a, err := NewAgent(data, "a", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(data, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, a.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Scaffold(); !errors.Is(err, ErrDenied) {
		t.Errorf("a linked home: %v", err)
	}
	if err := os.Remove(a.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(a.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"memory": outside, "SOUL.md": filepath.Join(outside, "new")} {
		if err := os.Symlink(target, filepath.Join(a.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	done, err := a.Scaffold()
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("a linked memory folder: %+v %v", done, err)
	}
	if !strings.Contains(strings.Join(done.Created, " "), "AGENTS.md") {
		t.Errorf("one bad link stops the rest: %+v", done)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("written outside: %v %v", left, err)
	}
}

func TestAgentIDsAreChecked(t *testing.T) {
	t.Parallel()
	for _, id := range []AgentID{"", "A", "a/b", "..", "a.b", "a b", "ä", "a\n", AgentID(strings.Repeat("a", 65))} {
		if _, err := NewAgent("/data", id, "", ""); !errors.Is(err, ErrAgentID) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
	a, err := NewAgent("/data", "my_agent-2", "", "")
	if err != nil || a.Dir != "/data/agents/my_agent-2" || a.Name != "my_agent-2" {
		t.Errorf("%+v %v", a, err)
	}
	if a, err = NewAgent("/data", "x", "X", "/srv/x"); err != nil || a.Dir != "/srv/x" {
		t.Errorf("%+v %v", a, err)
	}
}

func TestE11_WorkFoldersKeepSessionsApart(t *testing.T) {
	t.Parallel()
	a := Agent{ID: "a", Dir: "/d/agents/a"}
	dm := Key{Agent: "a", Scope: ScopeAddress, Network: "telegram", Account: "1", Kind: channels.DM, Peer: "7"}
	group := dm
	group.Kind, group.Peer = channels.Group, "-9"
	thread, named, helper := group, dm, dm
	thread.Thread, named.Name, helper.Helper = "5", "side", "01J"
	local := Key{Agent: "a", Scope: ScopeLocal, Local: "webchat"}
	owner, owner2 := Actor{Person: "ana", Role: Owner}, Actor{Person: "Ana", Role: Owner}
	guest := Actor{Person: "bob", Role: Guest}
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return hex.EncodeToString(sum[:])[:16]
	}
	inDM := channels.Address{Network: "telegram", Account: "1", Kind: channels.DM, Peer: "7"}
	inBobs := inDM
	inBobs.Peer = "8"
	bobs := local
	bobs.Local = "bob:main"
	for _, c := range []struct {
		what, scope string
		key         Key
		actor       Actor
		at          channels.Address
		want        string
	}{
		{"an owner's DM", WorkScopeSession, dm, owner, inDM, "owner-ana"},
		{"an owner's local session", "", local, owner, inDM, "owner-ana"},
		{"another session of the owner", WorkScopeSession, named, owner, inDM, "owner-ana"},
		{"an owner with an odd id", WorkScopeSession, dm, owner2, inDM, "owner-" + hash("Ana")},
		{"an owner in a group", WorkScopeSession, group, owner, inDM, hash(group.String())},
		{"a guest's DM", WorkScopeSession, dm, guest, inDM, hash(dm.String())},
		{"a guest's named session", WorkScopeSession, named, guest, inDM, hash(named.String())},
		{"a thread", WorkScopeSession, thread, guest, inDM, hash(thread.String())},
		{"one for the agent", WorkScopeAgent, group, guest, inDM, "agent"},
		{"a helper", WorkScopeSession, helper, guest, inDM, hash(dm.String()) + "/helpers/" + hash("01J")},
		{"an owner who writes into another's DM by the API", WorkScopeSession, dm, owner, channels.Address{}, hash(dm.String())},
		{"an owner who writes into another's DM from an own one", WorkScopeSession, dm, owner, inBobs, hash(dm.String())},
		{"an owner in another's local session", WorkScopeSession, bobs, owner, channels.Address{}, hash(bobs.String())},
		{"an owner's local session by the API", WorkScopeSession, local, owner, channels.Address{}, "owner-ana"},
		{"an owner without a person", WorkScopeSession, dm, Actor{Role: Owner}, inDM, hash(dm.String())},
	} {
		if got := a.WorkDir(c.scope, c.key, c.actor, c.at); got != "/d/agents/a/work/"+c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
