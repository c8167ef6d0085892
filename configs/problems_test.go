package configs_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/configs"
)

var update = flag.Bool("update", false, "write golden files again")

// TestProblems reads each testdata/problems/*.yaml and compares what is said about it with the .txt beside it: adding a case
// needs no Go. Lines that begin with "#env " set a variable.
func TestProblems(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d cases: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			folder, err := filepath.Abs("testdata/problems")
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var vars []string
			for line := range strings.Lines(string(text)) {
				if v, ok := strings.CutPrefix(strings.TrimSpace(line), "#env "); ok {
					vars = append(vars, v)
				}
			}
			o := configs.LoadOptions{Path: file, Env: env(vars...), Sections: sections()}
			got := "fine\n"
			if _, err := configs.Parse(text, o); err != nil {
				got = strings.ReplaceAll(strings.Join(problems(t, err), "\n")+"\n", folder, "HERE")
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}
