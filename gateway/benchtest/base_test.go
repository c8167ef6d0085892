package benchtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tolerated is how much worse a median may be than the base's.
const tolerated = 0.03

// findBase reads PARLEY_BENCH_BASE: another parley binary, or the folder of another checkout, whose binary is built and whose
// benchmarks in one process are run too.
func (bin *binaries) findBase(b *testing.B) {
	b.Helper()
	name := os.Getenv("PARLEY_BENCH_BASE")
	if name == "" {
		return
	}
	info, err := os.Stat(name)
	if err != nil {
		b.Fatal(err)
	}
	if bin.base = name; info.IsDir() {
		bin.tree, bin.base = name, filepath.Join(bin.dir, "base")
		compile(b, name, bin.base, "parley")
	}
}

// order is who is measured in a round, one behind the other: the base before us and behind us by turns.
func (r *bench) order(round int) []int { return append(r.gateways(round), echo, pooled) }

// gateways are those of them that are Parley.
func (r *bench) gateways(round int) []int {
	switch {
	case r.bin.base == "":
		return []int{parley}
	case round%2 == 0:
		return []int{base, parley}
	}
	return []int{parley, base}
}

// plays is how often a scene is played that one round is enough for when nothing is compared with a base.
func (r *bench) plays() int {
	if r.bin.base == "" {
		return 1
	}
	return r.rounds
}

// inProcess runs a benchmark of a package in processes of its own, in rounds that alternate with the base's checkout.
func (r *bench) inProcess(pkg, pattern, benchtime string) {
	trees := [subjects]string{parley: filepath.Join("..", ".."), base: r.bin.tree}
	var programs [subjects]string
	for who, tree := range trees {
		if tree == "" {
			continue
		}
		programs[who] = filepath.Join(r.root, fmt.Sprintf("%s-%d.test", filepath.Base(pkg), who))
		cmd := exec.CommandContext(r.b.Context(), "go", "test", "-c", "-o", programs[who], "./"+pkg)
		cmd.Dir = tree
		if out, err := cmd.CombinedOutput(); err != nil {
			r.b.Fatalf("build the tests of %s: %v\n%s", pkg, err, out)
		}
	}
	for round := range r.rounds {
		for _, who := range r.gateways(round) {
			if programs[who] == "" {
				continue
			}
			cmd := exec.CommandContext(r.b.Context(), programs[who], "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", benchtime)
			cmd.Dir = filepath.Join(trees[who], pkg)
			out, err := cmd.CombinedOutput()
			if err != nil {
				r.b.Fatalf("%v\n%s", err, out)
			}
			r.figures(who, string(out))
		}
	}
}

// figures notes what a benchmark has printed, by the name behind its slash and the unit.
func (r *bench) figures(who int, out string) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		_, scene, _ := strings.Cut(fields[0], "/")
		scene, _, _ = strings.Cut(scene, "-")
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				r.note(scene+" "+fields[i+1], who, v)
			}
		}
	}
}

// execs measures a command that does nothing, where there is a checkout to compare with; else BenchmarkExec prints it itself.
func (r *bench) execs() {
	if r.bin.tree != "" {
		r.inProcess("cmd/parley", "^BenchmarkExec$", "1x")
	}
}

// compared are rows of the comparison alone.
var compared = []row{
	{what: "a command that does nothing, cold: p50", unit: "ms", figure: "Cold p50-ms", digits: 2},
	{what: "… warm: p50", unit: "ms", figure: "Warm p50-ms", digits: 2},
	{what: "… hurried: p50", unit: "ms", figure: "Hurried p50-ms", digits: 2},
}

// compare writes each row's medians beside the base's, and marks what is worse by more than is tolerated.
func (r *bench) compare(out *strings.Builder) {
	if r.bin.base == "" {
		return
	}
	fmt.Fprintf(out, "\nAgainst %s: medians (min–max) of alternating rounds; > 3 %% marks what is worse by more than that.\n\n", os.Getenv("PARLEY_BENCH_BASE"))
	out.WriteString("| what | base | this | this / base | |\n| --- | --- | --- | --- | --- |\n")
	var missing []string
	for _, row := range append(rows[:len(rows):len(rows)], compared...) {
		got := r.seen[row.figure]
		if got == nil {
			continue
		}
		if len(got[base]) == 0 || len(got[parley]) == 0 {
			missing = append(missing, row.what)
			continue
		}
		what, mark := row.what, ""
		if row.unit != "" {
			what += ", " + row.unit
		}
		was, is := median(got[base]), median(got[parley])
		if row.worse(was, is) {
			mark = "> 3 %"
		}
		ratio := "–"
		if was != 0 {
			ratio = fmt.Sprintf("%.3f", is/was)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", what, row.cell(got[base]), row.cell(got[parley]), ratio, mark)
	}
	if len(missing) > 0 {
		fmt.Fprintf(out, "\nNot compared, since they are measured inside this process or want a checkout for a base: %s.\n", strings.Join(missing, "; "))
	}
	out.WriteString("The page's figures (BenchmarkWebChat) are not compared.\n")
}

// worse says that a median is further from good than is tolerated.
func (row row) worse(was, is float64) bool {
	if strings.HasSuffix(row.figure, " rate") || strings.HasSuffix(row.figure, "msg/s") {
		return is < was*(1-tolerated)
	}
	return is > was*(1+tolerated)
}
