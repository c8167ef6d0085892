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
		columns[s.table] = s.columns
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

func TestASealTellsValuesApart(t *testing.T) {
	t.Parallel()
	price := 1.5
	seen := map[int64]int{}
	for i, values := range [][]any{{}, {nil}, {""}, {"", ""}, {int64(0)}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {int64(97)}, {"a"}, {price}, {nil, nil}, {int64(1), int64(0)}, {int64(0), int64(1)}} {
		if other, ok := seen[seal(values...)]; ok {
			t.Errorf("%d and %d have one seal", other, i)
		}
		seen[seal(values...)] = i
	}
	if seal(7, &price, "x\x00") != seal(int64(7), price, "x\uFFFD") {
		t.Error("a value as it is given and as it is stored have two seals")
	}
}
