package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A hint names the program as it works when it is typed where the hint is read.
func TestProgramIsNamedAsItIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, link, other := filepath.Join(dir, "bin", "parley"), filepath.Join(dir, "parley"), filepath.Join(dir, "other")
	if err := os.Mkdir(filepath.Dir(self), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{self, other} {
		if err := os.WriteFile(name, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ self, found, dir, want string }{
		{self, self, dir, "parley"},
		{self, link, "/", "parley"},
		{self, other, dir, "bin/parley"},
		{self, "", dir, "bin/parley"},
		{self, "", filepath.Dir(self), "./parley"},
		{self, "", "/nowhere", self},
		{"/a b/it's/parley", "", "/", `'a b/it'\''s/parley'`},
		{self, "", "", self},
	} {
		if got := programAt(c.self, c.found, c.dir); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestHintsNameCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"start it with: parley gateway":             "start it with: P gateway",
		"`parley webchat` prints, or (parley chat)": "`P webchat` prints, or (P chat)",
		"parley restore FILE":                       "P restore FILE",
		"parley --config x doctor":                  "P --config x doctor",
		"the folder parley is read, parley: x":      "the folder parley is read, parley: x",
		"/usr/bin/parley chat":                      "/usr/bin/parley chat",
	} {
		if got := hinted(text, "P"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
