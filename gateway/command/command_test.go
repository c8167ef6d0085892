package command_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/gateway/command"
	"parley/gateway/control/all"
	"parley/gateway/spec"
	"parley/workspace"
)

func TestParseReadsNamesAndArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, name string
		args       []string
	}{
		{"/help", "help", nil},
		{"  /HELP  ", "help", nil},
		{"/help stop", "help", []string{"stop"}},
		{"/help@parley_test_bot stop", "help", []string{"stop"}},
		{"/queue collect", "queue", []string{"collect"}},
		{"/queue \"collect\"", "queue", []string{"collect"}},
		{"/help 'co llect'", "help", []string{"co llect"}},
		{"/help \"\"", "help", []string{""}},
		{"/queue\tco\"ll\"ect\n", "queue", []string{"collect"}},
		{"/id", "whoami", nil},
		{"/new what's up, \"doc\"", "new", []string{"what's up, \"doc\""}},
		{"/new  two  spaces ", "new", []string{"two  spaces"}},
		{"/session rename \"A name\"", "session", []string{"rename", "A name"}},
		{"/sessions SWITCH it's mine", "session", []string{"switch", "it's mine"}},
		{"/t HIGH", "think", []string{"high"}},
		{"/queue collect debounce:2s cap:5 drop:old", "queue", []string{"collect", "debounce:2s", "cap:5", "drop:old"}},
		{"/queue drop:new", "queue", []string{"drop:new"}},
		{"/start", "help", nil},
		{"/start@parley_test_bot deep-link now", "help", nil},
	} {
		p, err := command.Parse(c.line)
		if err != nil || p.Command.Name != c.name || !slices.Equal(p.Args, c.args) {
			t.Errorf("%q: %s %q, %v; want %s %q", c.line, p.Command.Name, p.Args, err, c.name, c.args)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, says string
		is         error
	}{
		{"", "begins with", command.ErrUnknown},
		{"hello", "begins with", command.ErrUnknown},
		{"/", "Which command?", command.ErrUnknown},
		{"/ ", "Which command?", command.ErrUnknown},
		{"/stpo", "Did you mean /stop?", command.ErrUnknown},
		{"/sta", "Did you mean /status?", command.ErrUnknown},
		{"/quit", "There is no command /quit.", command.ErrUnknown},
		{"/queue sideways", "There is no queue mode \"sideways\". Modes are steer", workspace.ErrInvalid},
		{"/queue steer collect", "“collect” is not what /queue takes: [steer", workspace.ErrInvalid},
		{"/queue cap:none", "“cap:none” is not what /queue takes", workspace.ErrInvalid},
		{"/queue cap:1000000", "cap is a number of messages from 1 to 1000", workspace.ErrInvalid},
		{"/queue debounce:1h", "debounce is a time such as 700ms or 2s", workspace.ErrInvalid},
		{"/queue drop:all", "drop is summarize, old or new", workspace.ErrInvalid},
		{"/think harder", "“harder” is not what /think takes: [off|minimal", workspace.ErrInvalid},
		{"/session new", "/session takes [current|list", workspace.ErrInvalid},
		{"/session current x", "“x” is not what /session takes", workspace.ErrInvalid},
		{"/session export pdf", "“pdf” is not what /session takes", workspace.ErrInvalid},
		{"/model a b", "/model takes [list", workspace.ErrInvalid},
		{"/status now", "/status takes no arguments", workspace.ErrInvalid},
		{"/help \"stop", "is not closed", workspace.ErrInvalid},
		{"/" + strings.Repeat("x", 40), "There is no such command.", command.ErrUnknown},
		{"/\x1b[31mred", "There is no such command.", command.ErrUnknown},
		{"/help " + strings.Repeat("x", 5000), "longer than 4096 bytes", workspace.ErrInvalid},
	} {
		_, err := command.Parse(c.line)
		said, ok := workspace.Sentence(err)
		if !errors.Is(err, c.is) || !ok || !strings.Contains(said, c.says) {
			t.Errorf("%.40q: %v; want %q", c.line, err, c.says)
		}
	}
}

func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, c := range command.Table() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if names[n] || n == "" || n != strings.ToLower(n) {
				t.Errorf("name %q stands twice, is empty or not in lower case", n)
			}
			names[n] = true
			p, err := command.Parse("/" + n)
			if err != nil || p.Command.Name != c.Name {
				t.Errorf("/%s is %q, %v", n, p.Command.Name, err)
			}
		}
		if p, err := command.Parse(c.Example); err != nil || p.Command.Name != c.Name {
			t.Errorf("the example %q of /%s: %v", c.Example, c.Name, err)
		}
		if c.Help == "" || strings.HasSuffix(c.Help, ".") || strings.Contains(c.Help, "\n") || len(c.Help) > 100 {
			t.Errorf("/%s has the help %q", c.Name, c.Help)
		}
		if (c.MaxArgs > 0) != (c.Args != "") {
			t.Errorf("/%s takes %d arguments and shows %q", c.Name, c.MaxArgs, c.Args)
		}
	}
	menu := command.Menu()
	if len(menu) != len(command.Table()) {
		t.Errorf("the menu has %d items", len(menu))
	}
	for _, m := range menu { // Telegram's limits of a command: 32 and 256 characters
		if len(m.Name) > 32 || len(m.Help) > 256 {
			t.Errorf("menu item %q", m.Name)
		}
	}
}

// What changes what comes next takes its place in the order; what helps while a turn runs does not wait for it.
func TestOnlyWhatChangesTheSessionIsInOrder(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"/new": true, "/reset": true, "/NEW@bot": true, "/stop": false, "/status": false, "/why": false, "/queue": false,
		"/queue collect": false, "/model": false, "/model list": false, "/model 2": false, "/think": false, "/t high": true, "/retry": false, "/undo": true,
		"/compact": true, "/session": false, "/session rename x": false, "/help": false, "/whoami": false, "/resume": false, "/nonsense": false, "new": false} {
		if got := command.OrderOf(line) == spec.InOrder; got != want {
			t.Errorf("%s is in order: %v", line, got)
		}
	}
	for line, want := range map[string]bool{"/model 2": true, "/model": false, "/retry": true, "/undo": false, "/new": false} {
		if got := command.OrderOf(line) == spec.AheadOfWait; got != want {
			t.Errorf("%s goes ahead of a wait for the model: %v", line, got)
		}
	}
}

// What changes where the room's next message goes is done before that one is routed, and only that.
func TestOnlyWhatLeadsAChatElsewhereIsBeforeRouting(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{"/link": false, "/link K7QF-M2XA": true, "/link K7QF M2XA": true, "/link nothing": false, "/activation": false, "/activation ALWAYS": true,
		"/session new x": true, "/session switch main": true, "/session switch": false, "/session list x": false, "/model 2": false, "/new": false} {
		if got := command.OrderOf(line) == spec.BeforeRouting; got != want {
			t.Errorf("%s is before routing: %v", line, got)
		}
	}
}

// Every slash command of a verb has a row, and every row is a verb's, or tells of the table itself.
func TestRowsAreThoseOfTheVerbs(t *testing.T) {
	t.Parallel()
	rows := map[string]bool{"help": true, "commands": true}
	for _, v := range all.Verbs() {
		for line := range strings.SplitSeq(v.Spec().Chat, ",") {
			if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" {
				rows[name] = true
			}
		}
	}
	for _, c := range command.Table() {
		if !rows[c.Name] {
			t.Errorf("/%s does nothing", c.Name)
		}
		delete(rows, c.Name)
	}
	for name := range rows {
		t.Errorf("/%s has no row", name)
	}
}

func TestNearestFindsTypingErrors(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"stpo": "stop", "hlep": "help", "hel": "help", "statsu": "status", "whoam": "whoami", "quue": "queue",
		"resum": "resume", "comands": "commands", "nwe": "new", "why?": "why", "stopp": "stop"} {
		if got := command.Nearest(typed); got != want {
			t.Errorf("%s is taken for %s, want %s", typed, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"/help", "/help stop", "/queue \"a b\" 'c'", "/", "//", "/help@bot x", "/\x00", "/“x”", "/new \"", "/ help", "hello", "/héłp", "/\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p, err := command.Parse(line)
		if err != nil {
			said, ok := workspace.Sentence(err)
			if !ok || said == "" || len(said) > 400 || strings.ContainsAny(said, "\n\x1b\x00") {
				t.Errorf("%q: no plain sentence: %q", line, said)
			}
			if utf8.ValidString(line) && !utf8.ValidString(said) {
				t.Errorf("%q: the sentence is not a text: %q", line, said)
			}
			if command.OrderOf(line) != spec.Concurrent {
				t.Errorf("%q cannot be read, and is not answered at once", line)
			}
			return
		}
		if len(p.Args) > p.Command.MaxArgs || p.Command.Name == "" {
			t.Errorf("%q: %d arguments for %q", line, len(p.Args), p.Command.Name)
		}
		total := 0
		for _, a := range p.Args {
			total += len(a)
		}
		if utf8.ValidString(line) && total > len(line) {
			t.Errorf("%q: arguments are longer than their line: %q", line, p.Args)
		}
	})
}
