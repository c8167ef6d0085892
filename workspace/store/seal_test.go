package store

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An UPDATE of a sealed column without its seal would make the daily check stop a gateway that is well.
func TestNoUpdateBreaksASeal(t *testing.T) {
	t.Parallel()
	columns := map[string]string{}
	for _, s := range sealedTables() {
		columns[s.Table] = s.Columns
	}
	update := regexp.MustCompile("(?s)UPDATE (inputs|runs|steps|entries|outbound|parts|approvals) SET (.*?)(WHERE|`,|`\\)|$)")
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range update.FindAllStringSubmatch(string(text), -1) {
			found++
			table, set := m[1], m[2]
			for _, column := range strings.Split(columns[table], ",") {
				column = strings.TrimSpace(column)
				touched := regexp.MustCompile(`(^|[ ,])` + column + ` =`).MatchString(set)
				if touched && !regexp.MustCompile(`(^|[ ,])seal =`).MatchString(set) {
					t.Errorf("%s: changes %s.%s and not the seal: %s", name, table, column, set)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d updates were found", found)
	}
}
