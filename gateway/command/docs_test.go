package command_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/channels"
	"parley/gateway/command"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/workspace"
)

var update = flag.Bool("update", false, "write docs/commands.md again")

const docsHead = `# Commands

A message that begins with “/” is a command: in direct chats, in groups (with the bot's name behind it where the network
wants that), in WebChat, the terminal and the API. This page is made of the table that parses them. “Quoted words” stay
together; the last argument of commands that take a text is the rest of the line as it was written.

What is set for a session, or for a room, stays until it is changed again: over ` + "`/new`" + ` and over restarts, and ` + "`/status`" + `
lists it. Commands that change what comes next are done in their place among the messages; the others at once, also
while a turn runs. Nothing that a command takes out of the prompt is taken out of the record.

Who: what a role may do, as in [rights.md](rights.md), which has the words. A command that one may not use is not shown
to them. What cannot be understood is answered with one sentence that names the syntax and an example.

| command | what it does | owner | member | guest |
| --- | --- | --- | --- | --- |
`

// docs writes docs/commands.md.
func docs(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(docsHead)
	for _, c := range command.Table() {
		fmt.Fprintf(&b, "| [`/%s`](#%s) | %s | %s | %s | %s |\n", c.Name, c.Name, c.Help, who(c, workspace.Owner), who(c, workspace.Member), who(c, workspace.Guest))
	}
	for _, c := range command.Table() {
		fmt.Fprintf(&b, "\n## %s\n\n`/%s`: %s.\n", c.Name, strings.TrimSpace(c.Name+" "+c.Args), c.Help)
		if text := command.More(c); text != "" {
			fmt.Fprintf(&b, "\n%s\n", text)
		}
		fmt.Fprintf(&b, "\n- Example: `%s`\n", c.Example)
		if len(c.Aliases) > 0 {
			fmt.Fprintf(&b, "- Also: `/%s`\n", strings.Join(c.Aliases, "`, `/"))
		}
		if c.Wrong != "" {
			_, err := command.Parse(c.Wrong)
			said, ok := workspace.Sentence(err)
			if !ok {
				t.Errorf("%s is understood: %v", c.Wrong, err)
			}
			fmt.Fprintf(&b, "- `%s` is answered: %s\n", c.Wrong, said)
		}
		b.WriteString(whoOf(c))
	}
	return b.String()
}

// who is what a role may do with a command, in the words of docs/rights.md.
func who(c command.Command, role workspace.Role) string {
	cells := map[string]bool{}
	for _, verb := range command.Verbs(c) {
		cells[reach(verb, role)] = true
	}
	if len(cells) > 1 {
		return "see below"
	}
	return reach(command.Verbs(c)[0], role)
}

func reach(verb string, role workspace.Role) string {
	may := func(kind channels.PeerKind) bool {
		return control.New(control.Options{Verbs: all.Verbs()}).May(control.Call{Actor: workspace.Actor{Person: "p", Role: role}, Kind: kind}, verb)
	}
	switch {
	case may(channels.Group):
		return "anywhere"
	case may(channels.DM):
		return "direct"
	}
	return "no"
}

// whoOf tells apart what words of a command may be used by whom, where that differs.
func whoOf(c command.Command) string {
	if who(c, workspace.Owner) != "see below" && who(c, workspace.Member) != "see below" && who(c, workspace.Guest) != "see below" {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n| | owner | member | guest |\n| --- | --- | --- | --- |\n")
	for i, verb := range command.Verbs(c)[1:] {
		fmt.Fprintf(&b, "| `/%s %s` | %s | %s | %s |\n", c.Name, c.Choices[i], reach(verb, workspace.Owner), reach(verb, workspace.Member), reach(verb, workspace.Guest))
	}
	return b.String()
}

// docs/commands.md is what the table makes. What changes the table changes the page, by -update.
func TestTheDocumentIsWhatTheTableMakes(t *testing.T) {
	t.Parallel()
	const file = "../../docs/commands.md"
	want := docs(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("docs/commands.md is stale (%v): run go test ./gateway/command -update", err)
	}
}

// Every section of more.md is a command's, and no command is left without a wrong line unless it takes any text.
func TestEveryCommandIsExplained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("more.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Count("\n"+string(text), "\n## ")
	for _, c := range command.Table() {
		if command.More(c) != "" {
			sections--
		}
		if (c.Wrong == "") != (c.Text && c.Choices == nil) {
			t.Errorf("/%s: takes any text: %v, wrong line %q", c.Name, c.Text, c.Wrong)
		}
	}
	if sections != 0 {
		t.Errorf("%d sections of more.md belong to no command", sections)
	}
}
