package approval

import (
	"strings"
	"testing"

	"parley/workspace"
)

// T11: what is pushed out of sight is spoken of before it.
func TestT11_AQuestionWarnsOfBlanks(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"ls" + strings.Repeat(" ", 200) + "; rm -rf /work": true,
		"ls" + strings.Repeat("\n", 30) + "rm -rf /work":   true,
		"ls\n\n\nrm -rf /work":                             false,
		"ls" + strings.Repeat(" ", 200):                    false, // nothing stands behind them
		"if x\n" + strings.Repeat(" ", 24) + "then":        false,
	} {
		head := head(workspace.Room{}, workspace.Approval{Tool: "exec", Requester: "ana", Body: workspace.ApprovalBody{Shown: line}})
		if strings.Contains(head, "long stretch of blanks") != want {
			t.Errorf("%.40q: %s", line, head)
		}
	}
}
