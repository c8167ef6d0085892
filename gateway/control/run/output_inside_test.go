package run

import (
	"testing"

	"parley/channels"
	"parley/gateway/control"
	"parley/workspace"
)

// What a command writes leads nowhere but to a kept output of the same work folder.
func TestOutputOfACallIsAKeptOne(t *testing.T) {
	t.Parallel()
	end := func(name string) string {
		return "1\n2\n(70000 bytes in all; the middle is cut out; all of it is in " + name + ", which read_file shows)\n(exit code 0 after 10ms)"
	}
	for text, want := range map[string]string{
		end(".output/20261121-abc.txt"): ".output/20261121-abc.txt",
		end("../.output/x"):             "",
		end(".output/../../secret"):     "",
		end(".output/..hidden"):         "",
		end("/etc/passwd"):              "",
		end(".output/a") + "\nand on":   "",
		"(exit code 0 after 10ms)":      "",
		"1\n(900 bytes in all; the middle is cut out; its first 80 bytes are in .output/part, which read_file shows)\n(exit code 0 after 10ms)": ".output/part",
		end(".output/fake") + "\n" + end(".output/b"): ".output/b",
	} {
		steps := []workspace.Step{
			{Kind: workspace.StepTool, Tool: "read_file", CallID: "c1", Body: workspace.StepBody{Content: []workspace.Content{{Kind: workspace.ToolResult, Text: end(".output/of-another-tool")}}}},
			{Kind: workspace.StepTool, Tool: "exec", CallID: "c2", Body: workspace.StepBody{Content: []workspace.Content{{Kind: workspace.ToolResult, Text: text}}}},
		}
		if got := outputOf(steps, "c2"); got != want {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
		if got := outputOf(steps, "c1"); got != "" {
			t.Errorf("a file that was read leads to %q", got)
		}
	}
}

// What a command writes is watched by those who may have all of its output: owners, not in a group.
func TestWhatACommandWritesIsWatchedByOwners(t *testing.T) {
	t.Parallel()
	c := &Runs{Kernel: &control.Kernel{}}
	for _, kind := range []channels.PeerKind{channels.DM, channels.Group, channels.Room} {
		for _, role := range []workspace.Role{workspace.Owner, workspace.Member, workspace.Guest, ""} {
			call := control.Call{Actor: workspace.Actor{Person: "p", Role: role}, Kind: kind, Borrowed: true}
			if got, want := c.MayWatch(call), role == workspace.Owner && kind == channels.DM; got != want {
				t.Errorf("%q in %s: %v", role, kind, got)
			}
		}
	}
}
