package api_test

import (
	"os"
	"path/filepath"
	"testing"

	"parley/gateway"
	"parley/workspace/folder"
)

// heldYAML is an agent that may write a folder in which a command has made x/.git, which was renamed: opt leaves that behind.
func heldYAML(t *testing.T) (yaml string, opt func(*gateway.Options)) {
	t.Helper()
	proj, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	yaml = "\nagents: [{id: assistant, name: Assistant, folders: [{path: " + proj + ", as: proj, mode: rw}]}]"
	return yaml, func(o *gateway.Options) {
		w := folder.New(folder.Options{Dir: filepath.Join(o.Source.Current().DataDir, "folders")})
		defer w.Close()
		g, err := w.Guard(proj)
		if err != nil {
			t.Fatal(err)
		}
		e, err := g.Enter(t.Context())
		if err == nil {
			err = os.MkdirAll(filepath.Join(proj, "x", ".git"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		if held := e.Leave(); len(held) != 1 || held[0].Path != "x/.git" {
			t.Fatalf("renamed: %v", held)
		}
	}
}
