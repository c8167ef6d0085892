package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/channels/all"
	"parley/configs"
	"parley/workspace/clip"
)

const module = "parley/"

// Who may import whom. Arrows point down only. The first line whose left side fits a package holds for it; "*" is
// one element of a path, "..." any number of them. A leaf may be imported by all.
const arrows = `
cmd/echobot               ->
cmd/parley                -> cmd/parley/internal/* gateway gateway/client gateway/control gateway/control/* gateway/spec configs configs/* channels/all tools/sandbox workspace/disk
cmd/parley/internal/cli   -> gateway gateway/client gateway/control gateway/control/* configs configs/* channels/all
cmd/parley/internal/printer -> cmd/parley/internal/cli gateway/client
cmd/parley/internal/help  -> cmd/parley/internal/cli
cmd/parley/internal/markdown -> cmd/parley/internal/cli channels/markup workspace
cmd/parley/internal/chat  -> cmd/parley/internal/cli cmd/parley/internal/markdown cmd/parley/internal/printer gateway gateway/client gateway/control gateway/control/* gateway/spec workspace
cmd/parley/internal/daemon -> cmd/parley/internal/cli gateway configs configs/* channels/all
cmd/parley/internal/service -> cmd/parley/internal/cli configs
cmd/parley/internal/onboard -> configs/edit agentloop/llm/provider gateway/snapshot gateway/control/operator channels cmd/parley/internal/chat cmd/parley/internal/cli cmd/parley/internal/service cmd/parley/internal/daemon gateway gateway/client configs channels/all
cmd/parley/internal/walktest -> channels channels/*/* workspace workspace/store
cmd/*                     -> gateway gateway/client gateway/control gateway/control/* gateway/spec configs channels/all tools/sandbox workspace/disk
gateway/client            ->
gateway/benchtest         ->
gateway/crashtest         ->
gateway/bus               ->
gateway/live              -> gateway/bus agentloop workspace
gateway/transport         -> routes workspace workspace/store channels configs
gateway/attachment        -> agentloop agentloop/llm gateway/transport workspace workspace/blob workspace/media channels
gateway/transcript        -> agentloop channels workspace
gateway/snapshot          -> agentloop/... tools/... routes workspace workspace/disk channels configs
gateway/logbook           ->
gateway/rights            -> workspace channels
gateway/spec              -> workspace
gateway/intake            -> gateway/approval gateway/delivery gateway/attachment gateway/transport gateway/transcript gateway/snapshot gateway/live gateway/rights agentloop/lane routes workspace workspace/store channels configs
gateway/delivery          -> gateway/transport workspace workspace/blob workspace/media workspace/store channels channels/markup
gateway/progress          -> gateway/delivery gateway/snapshot gateway/transport agentloop agentloop/lane agentloop/llm workspace workspace/store channels channels/markup
gateway/turn              -> gateway/approval gateway/attachment gateway/bus gateway/delivery gateway/live gateway/progress gateway/snapshot gateway/transcript gateway/transport agentloop/... tools/builtin workspace workspace/clip workspace/disk workspace/store channels
gateway/grant             -> workspace
gateway/approval          -> gateway/bus gateway/delivery gateway/grant gateway/live gateway/rights gateway/snapshot gateway/transport agentloop workspace workspace/clip workspace/store channels channels/markup configs
gateway/control           -> gateway/rights gateway/snapshot gateway/spec workspace workspace/clip workspace/lazy workspace/store channels channels/markup configs
gateway/setup             -> agentloop/llm/provider gateway/transport workspace workspace/store channels configs configs/*
gateway/control/all       -> gateway/control gateway/control/*
gateway/control/config    -> gateway/control gateway/rights gateway/setup workspace channels configs configs/*
gateway/control/controltest -> gateway/setup configs/source gateway/control gateway/control/* gateway/logbook gateway/rights gateway/snapshot gateway/transport gateway/turn agentloop agentloop/lane agentloop/llm routes tools workspace workspace/store channels configs
gateway/control/view      -> gateway/control gateway/live agentloop agentloop/llm workspace
gateway/control/run       -> gateway/control gateway/control/approval gateway/control/view gateway/rights gateway/spec agentloop workspace workspace/clip workspace/lazy workspace/store
gateway/control/operator  -> gateway/control gateway/control/view gateway/intake gateway/logbook gateway/rights gateway/snapshot gateway/spec gateway/transport agentloop/llm/provider tools routes workspace/... channels
gateway/control/*         -> gateway/control gateway/control/view gateway/approval gateway/intake gateway/logbook gateway/rights gateway/snapshot gateway/spec gateway/transcript gateway/transport gateway/turn agentloop/... tools routes workspace/... channels
gateway/api/wire          -> gateway/control gateway/spec channels workspace
gateway/api/limit         -> gateway/api/wire workspace
gateway/api/signin        -> gateway/api/limit gateway/api/wire
gateway/api/once          -> gateway/api/wire gateway/control workspace
gateway/api/stream        -> gateway/api/limit gateway/api/wire gateway/bus gateway/control gateway/control/* gateway/live gateway/logbook gateway/spec agentloop workspace
gateway/api               -> gateway/api/* gateway/control gateway/control/* gateway/live gateway/spec channels workspace
gateway/command           -> gateway/control gateway/control/* gateway/live gateway/spec agentloop channels workspace
gateway/task              -> gateway/control gateway/control/* gateway/live agentloop agentloop/llm channels workspace
gateway                   -> gateway/... agentloop/... tools/... routes workspace/... channels/... configs configs/*
configs/origin            ->
configs                   ->
configs/edit              ->
configs/source            -> configs
configs/guard             -> configs configs/edit
agentloop/fair            -> workspace
agentloop/llm             -> agentloop/fair workspace
agentloop/llm/provider    -> agentloop/llm agentloop/llm/wire workspace
agentloop/llm/*           -> agentloop/llm agentloop/llm/wire workspace
agentloop/budget          -> agentloop/llm agentloop/llm/price workspace
agentloop/lane            -> agentloop agentloop/budget agentloop/fair agentloop/llm tools workspace
agentloop                 -> agentloop/llm tools tools/tail workspace workspace/disk
tools/sandbox/egress      ->
tools/sandbox/internal/*  ->
tools/tail                -> workspace
tools/sandbox             -> tools/sandbox/internal/cell tools/tail workspace workspace/disk
tools/builtin             -> tools tools/sandbox workspace workspace/disk workspace/memory workspace/skill
tools/*                   -> tools workspace workspace/memory workspace/skill
tools                     -> tools/tail workspace
routes                    -> channels workspace
workspace/storetest       -> workspace/store workspace channels
workspace/clip            ->
workspace/lazy            ->
workspace/rule            ->
workspace/tree            ->
workspace/workers         ->
workspace/store           -> workspace workspace/store/engine channels
workspace/store/engine    -> workspace workspace/archive channels
workspace/disk            -> workspace/tree
workspace/*               -> workspace workspace/disk channels
workspace                 -> workspace/clip workspace/disk workspace/tree channels
channels/all              -> channels channels/*
channels/channeltest      -> channels channels/markup
channels/channeltest/stage ->
channels/markup           -> channels
channels/webchat          -> channels channels/markup channels/webchat/ui
channels/webchat/ui       ->
channels/*/*              -> channels channels/channeltest/stage
channels/*                -> channels channels/markup
channels                  ->
`

// leaves know nothing of Parley.
var leaves = []string{"configs/origin", "workspace/clip", "workspace/lazy", "workspace/rule", "workspace/tree", "workspace/workers"}

// walled are packages that only one other imports, whatever the table allows: what has them to itself.
var walled = map[string]string{"workspace/store/engine": "workspace/store"}

func TestArrowsPointDown(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; seen++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range wrongImports(p.ImportPath, p.Imports) {
			t.Error(wrong)
		}
	}
	if seen < 10 {
		t.Errorf("go list told of %d packages", seen)
	}
}

// wrongImports names what a package may not import, or that no arrow begins at it.
func wrongImports(pkg string, imports []string) (wrong []string) {
	pkg = strings.TrimPrefix(pkg, module)
	for line := range strings.Lines(strings.TrimSpace(arrows)) {
		left, right, _ := strings.Cut(line, "->")
		if !fits(strings.TrimSpace(left), pkg) {
			continue
		}
		may := strings.Fields(right)
		for _, i := range imports {
			to, ours := strings.CutPrefix(i, module)
			if only := walled[to]; only != "" && pkg != only {
				wrong = append(wrong, pkg+" imports "+to+", which only "+only+" may")
				continue
			}
			if ours && !slices.Contains(leaves, to) && !slices.ContainsFunc(may, func(pattern string) bool { return fits(pattern, to) }) {
				wrong = append(wrong, pkg+" imports "+to+"; it may import only: "+strings.Join(may, " "))
			}
		}
		return wrong
	}
	return []string{pkg + " has no line in the table of arrows"}
}

func fits(pattern, pkg string) bool {
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == above || strings.HasPrefix(pkg, above+"/")
	}
	ok, err := path.Match(pattern, pkg)
	return ok && err == nil
}

func TestArrowsBite(t *testing.T) {
	t.Parallel()
	for _, edge := range []string{
		"cmd/parley workspace/store", "cmd/parley/internal/cli cmd/parley/internal/chat", "cmd/parley/internal/markdown cmd/parley/internal/chat", "cmd/parley/internal/help gateway", "cmd/parley/internal/chat cmd/parley/internal/onboard", "cmd/parley/internal/daemon cmd/parley/internal/chat", "cmd/parley/internal/service gateway", "cmd/parley/internal/onboard workspace/store", "cmd/house cmd/parley/internal/cli", "cmd/echobot channels", "configs workspace", "channels workspace", "channels/telegram routes", "channels/telegram channels/slack",
		"channels/telegram channels/all", "channels/telegram/telegramtest channels/telegram", "routes agentloop", "workspace routes", "workspace/store workspace/memory", "workspace/store workspace/archive",
		"workspace/store/engine workspace/store", "workspace/storetest workspace/store/engine", "gateway/transport workspace/store/engine", "gateway/control workspace/store/engine", "gateway workspace/store/engine",
		"tools channels", "tools/builtin agentloop", "agentloop channels", "agentloop routes", "agentloop agentloop/lane", "agentloop/lane workspace/store", "agentloop/llm/openai agentloop/llm/anthropic",
		"gateway/api/limit gateway/control", "gateway/api/signin gateway/control", "gateway/control/view gateway/control/run",
		"gateway/api/once gateway/api", "gateway/api/stream gateway/api", "gateway/api/stream workspace/store", "gateway/api/stream gateway/api/signin",
		"gateway/api gateway/command", "gateway/api gateway/transport", "gateway/command gateway/api", "gateway/api workspace/store", "gateway/command workspace/store", "gateway/control gateway/api", "gateway/control gateway", "gateway/control gateway/control/run", "gateway/control/session gateway/control/run", "gateway/control/run gateway/control/session",
		"gateway/control/outbound gateway/api", "gateway/control/outbound workspace/store/engine", "gateway/spec gateway/control",
		"gateway/live gateway/api", "gateway/turn gateway", "gateway/turn gateway/control", "gateway/turn gateway/command", "gateway/turn gateway/intake", "gateway/turn routes", "gateway/turn configs", "gateway/approval gateway/turn", "gateway/progress gateway/turn", "gateway/progress gateway/live", "gateway/delivery gateway/progress", "gateway/api gateway/turn", "gateway/approval gateway", "gateway/approval gateway/control", "gateway/approval gateway/transcript", "gateway/approval agentloop/lane", "gateway/delivery gateway/approval", "gateway/bus gateway/live", "gateway/bus workspace", "gateway/transport gateway/bus", "gateway/attachment gateway", "gateway/attachment workspace/store", "gateway/delivery gateway", "gateway/delivery gateway/live", "gateway/delivery gateway/control", "gateway/transport gateway/delivery", "gateway/intake gateway", "gateway/intake gateway/turn", "gateway/intake gateway/control", "gateway/intake gateway/command", "gateway/delivery gateway/intake", "gateway/transport gateway/live", "gateway/transport agentloop", "gateway/transcript workspace/store", "gateway/transcript gateway/control", "gateway/snapshot gateway/transport", "gateway/snapshot gateway/control", "gateway/snapshot workspace/store", "gateway/live workspace/store", "gateway/client workspace", "gateway cmd/parley", "drawer channels",
	} {
		from, to, _ := strings.Cut(edge, " ")
		if len(wrongImports(module+from, []string{"fmt", module + to})) != 1 {
			t.Errorf("%s may import %s", from, to)
		}
	}
	for _, edge := range []string{
		"cmd/parley gateway", "gateway workspace/store", "gateway routes", "gateway/api gateway/control", "channels/all channels/telegram", "channels/telegram channels/markup",
		"agentloop/llm/openai agentloop/llm", "agentloop/lane agentloop", "routes channels", "workspace/store workspace", "workspace/store workspace/store/engine", "tools/builtin tools",
	} {
		from, to, _ := strings.Cut(edge, " ")
		if wrong := wrongImports(module+from, []string{"fmt", module + to}); len(wrong) != 0 {
			t.Error(wrong)
		}
	}
}

// Where context.Background may stand outside cmd and tests: a folder or file, and why.
var background = map[string]string{
	"workspace/disk/":  "a count is bounded by what a folder may hold, and is of use to others when its asker has gone",
	"workspace/store/": "a unit is local and short; one that has begun is not given up halfway",
}

// Where init() may stand: a file, and why.
var inits = map[string]string{
	"tools/sandbox/internal/cell/life_linux.go": "a command waits for its sandbox's first process: main, behind the tables of every library, is ten milliseconds too late for it",
}

// Where a network may be named outside its adapter and tests: a file, and why. What a network can do and wants is in its
// Traits: elsewhere a name that decides something would have to be found for the next network.
var named = map[string]string{
	"channels/key.go":                              "the form of a network's keys stands in journals, and does not change with its adapter",
	"channels/message.go":                          "a dialect of markup is called after the network that renders it",
	"configs/rules.go":                             "the channels that are always there, and a field of models",
	"gateway/control/call.go":                      "the surfaces of calls, as the audit log has them",
	"workspace/store/migrations/0001_line.sql":     "frozen",
	"workspace/store/migrations/0004_backfill.sql": "rows that were stored before networks said it of themselves",
	"cmd/echobot/main.go":                          "a flag; the bot is for Telegram alone",
	"cmd/parley/internal/help/examples.go":         "the command that prints the page's link",
	"cmd/parley/webchat.go":                        "the command that prints the page's link",
}

func TestSourcesOfTheCoreNameNoNetwork(t *testing.T) {
	t.Parallel()
	names := []string{configs.WebChat, configs.API}
	for _, f := range all.Factories() {
		names = append(names, string(f.Network))
	}
	unused := maps.Clone(named)
	err := sources(func(name, text string) error {
		if strings.Count(name, "/") > 1 && strings.HasPrefix(name, "channels/") {
			return nil
		}
		found, err := networksIn(name, text, names)
		if named[name] != "" && len(found) > 0 {
			delete(unused, name)
			return err
		}
		for _, what := range found {
			t.Errorf("%s names a network: %s; ask its Traits, or add a reason to the list", name, what)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range unused {
		t.Errorf("%s names no network (any more)", name)
	}
}

// Where kept files lie is workspace/blob's business. A file may be listed with its reason.
var keptPaths = map[string]string{
	"workspace/store/witness.go": "a data directory without a database is looked at for what was in it",
}

func TestSourcesLeaveKeptFilesToTheirStore(t *testing.T) {
	t.Parallel()
	err := sources(func(name, text string) error {
		if path.Dir(name) == "workspace/blob" || keptPaths[name] != "" {
			return nil
		}
		texts, err := textsIn(name, text)
		for _, s := range texts {
			if s == "blobs" || strings.HasPrefix(s, "blobs/") {
				t.Errorf("%s: %q: a kept file is opened by its reference", name, s)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// forTests are the fields by which a test ends or weakens what runs: store and gateway by name, the sandbox's start in its package.
// Code hands them on to the field of the same name, and gives them no value of its own, so that no configuration reaches them.
var forTests = []string{"Synchronous", "Point", "inherit", "stdin"}

func TestSourcesOnlyHandOnWhatIsForTests(t *testing.T) {
	t.Parallel()
	handed := 0
	err := sources(func(name, text string) error {
		own, other, err := givenForTests(name, text)
		for _, what := range own {
			t.Errorf("%s gives %s a value, which is for tests", name, what)
		}
		handed += other
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if handed == 0 {
		t.Error("nobody hands any of them on: are they called otherwise now?")
	}
	for text, want := range map[string]int{"o.Point = f": 1, "_ = O{Synchronous: s}": 1, "_ = O{Synchronous: o.Point}": 1, "_ = O{Point: o.Point}": 0, "o.Other = o.Point": 0} {
		if own, _, err := givenForTests("x.go", "package p\nfunc g() {"+text+"}"); err != nil || len(own) != want {
			t.Errorf("%s: %q, %v; want %d", text, own, err, want)
		}
	}
}

// givenForTests names the fields that a file sets, and counts those that it hands on.
func givenForTests(file, text string) (own []string, handed int, err error) {
	if !strings.HasSuffix(file, ".go") {
		return nil, 0, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			if !ok || !slices.Contains(forTests, key.Name) {
				break
			}
			if from, ok := n.Value.(*ast.SelectorExpr); ok && from.Sel.Name == key.Name {
				handed++
			} else {
				own = append(own, key.Name)
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if to, ok := left.(*ast.SelectorExpr); ok && slices.Contains(forTests, to.Sel.Name) {
					own = append(own, to.Sel.Name)
				}
			}
		}
		return true
	})
	return own, handed, nil
}

// sources gives each file of code outside tests, without the parts of it that only tests use.
func sources(each func(name, text string) error) error {
	return fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (base == "node_modules" || base == "testdata" || base == ".git" || strings.HasSuffix(base, "test")):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".sql"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			return err
		}
		return each(name, string(text))
	})
}

// textsIn are the texts of a Go file; any other file is one.
func textsIn(file, text string) (texts []string, err error) {
	if !strings.HasSuffix(file, ".go") {
		return []string{text}, nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, s)
			}
		}
		return true
	})
	return texts, nil
}

// networksIn are the texts in a file that are a network's name, or have one as a text of SQL.
func networksIn(file, text string, names []string) (found []string, err error) {
	texts, err := textsIn(file, text)
	for _, s := range texts {
		if slices.ContainsFunc(names, func(name string) bool { return s == name || strings.Contains(s, "'"+name+"'") }) {
			found = append(found, strconv.Quote(clip.Runes(s, 80)))
		}
	}
	return found, err
}

func TestNamesOfNetworksAreFound(t *testing.T) {
	t.Parallel()
	names := []string{"slack", "discord"}
	for text, want := range map[string]int{
		`if n == "slack" {}`: 1, "q := `source IN ('discord', 'slack')`": 1, `say("Slack is down", "slacker", n.Slack)`: 0, `case "slack", "discord":`: 2,
	} {
		if strings.HasPrefix(text, "case") {
			text = "switch n {" + text + "}"
		}
		if got, err := networksIn("x.go", "package p\nfunc f() {"+text+"}", names); err != nil || len(got) != want {
			t.Errorf("%s: %q, %v; want %d", text, got, err, want)
		}
	}
	if got, _ := networksIn("x.sql", "-- slack\nWHERE source = 'slack'", names); len(got) != 1 {
		t.Errorf("in SQL: %q", got)
	}
}

func TestSourcesKeepTheHouseRules(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{} // by folder, of those with code
	checked := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "node_modules" || base == "testdata" || base == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		checked++
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(strings.TrimPrefix(name, ".."+string(filepath.Separator)))
		if !strings.HasSuffix(name, "_test.go") {
			documented[path.Dir(name)] = documented[path.Dir(name)] || f.Doc != nil
		}
		for _, wrong := range wrongCode(set, f, name) {
			t.Error(wrong)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: the package has no comment that says what it is for", dir)
		}
	}
	if checked < 30 {
		t.Errorf("only %d files were read", checked)
	}
}

// wrongCode names what a file holds against the rules, each with its line.
func wrongCode(set *token.FileSet, f *ast.File, name string) (wrong []string) {
	say := func(n ast.Node, what string) {
		wrong = append(wrong, set.Position(n.Pos()).String()+": "+what)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil && inits[name] == "" {
				say(n, "init() hides when something happens; call it from where it is used")
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch {
			case pkg.Name == "time" && n.Sel.Name == "Sleep":
				say(n, "time.Sleep cannot be stopped; wait on a channel, a timer with ctx, or in a synctest bubble")
			case pkg.Name == "context" && (n.Sel.Name == "Background" || n.Sel.Name == "TODO") && !mayBackground(name):
				say(n, "context."+n.Sel.Name+" belongs to cmd and tests; pass a ctx on, or add a reason to the list")
			}
		}
		return true
	})
	return wrong
}

// mayBackground holds for commands, tests, and packages such as telegramtest that only tests use.
func mayBackground(name string) bool {
	if strings.HasPrefix(name, "cmd/") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") {
		return true
	}
	for place := range background {
		if strings.HasPrefix(name, place) {
			return true
		}
	}
	return false
}

func TestHouseRulesBite(t *testing.T) {
	t.Parallel()
	const source = `package p
import ("context"; "time")
func init() {}
func (x T) init() { time.Sleep(1); wait := time.Sleep; wait(2) }
var a, b = context.Background(), context.TODO()
`
	for name, want := range map[string]int{
		"gateway/x.go": 5, "workspace/store/x.go": 3, "workspace/store.go": 5, "gateway/x_test.go": 3, "cmd/parley/main.go": 3,
		"channels/telegram/telegramtest/x.go": 3,
	} {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := wrongCode(set, f, name); len(got) != want {
			t.Errorf("%s: %d faults, want %d: %s", name, len(got), want, strings.Join(got, "; "))
		}
	}
}
