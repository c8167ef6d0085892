package agentloop

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/workspace"
)

// What is known of a transcript never changes what the model is sent, however the transcript grows or is cut.
func TestKnownHistoryChangesNothing(t *testing.T) {
	t.Parallel()
	used := 0
	rapid.Check(t, func(t *rapid.T) {
		var history []workspace.Entry
		var known Known
		pictures := 0
		for turn := range rapid.IntRange(1, 30).Draw(t, "turns") {
			run := fmt.Sprint("r", turn)
			say := func(role workspace.EntryRole, content ...workspace.Content) {
				history = append(history, entry(run, role, content...))
			}
			for range rapid.IntRange(1, 2).Draw(t, "messages") {
				content := []workspace.Content{text(fmt.Sprint("q", turn))}
				if rapid.IntRange(0, 9).Draw(t, "picture") == 0 {
					pictures++
					content = append(content, workspace.Content{Kind: workspace.Image, Blob: "b", Text: "[picture]", Nth: pictures})
				}
				say(workspace.RoleUser, content...)
			}
			kind := rapid.SampledFrom([]string{"dm", "dm", "dm", "group"}).Draw(t, "kind")
			before := known.n
			past, now := known.split(history, workspace.RunID(run), kind)
			if before > 0 && known.n > before {
				used++
			}
			wantPast, wantNow := splitHistory(history, workspace.RunID(run), kind)
			if !reflect.DeepEqual(messagesOf(past), messagesOf(wantPast)) || !reflect.DeepEqual(now, wantNow) {
				t.Fatalf("turn %d differs: knew %d of %d entries", turn, before, len(history))
			}
			if rapid.Bool().Draw(t, "tool") {
				say(workspace.RoleAssistant, toolCall(run, "look", `{}`))
				if rapid.IntRange(0, 5).Draw(t, "lost") > 0 {
					say(workspace.RoleTool, result(run))
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "silent") > 0 {
				say(workspace.RoleAssistant, text(fmt.Sprint("a", turn)))
			}
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				history = slices.Clone(history[len(history)/2:])
			}
		}
	})
	if used == 0 {
		t.Error("nothing was ever known")
	}
}

// messagesOf is units without what only tells how they were put together.
func messagesOf(list []unit) (out []unit) {
	for _, u := range list {
		out = append(out, unit{messages: slices.Clone(u.messages), size: u.size})
	}
	return out
}
