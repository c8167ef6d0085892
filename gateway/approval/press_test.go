package approval

import (
	"testing"

	"parley/channels"
	"parley/workspace"
)

const asked workspace.ApprovalID = "01JABCDEFGHJKMNPQRSTVWXYZ0"

// A button's value is read back as what it decides; what only looks like one decides nothing.
func TestAButtonDecidesWhatItWasMadeFor(t *testing.T) {
	t.Parallel()
	for _, c := range []workspace.Choice{workspace.ChooseOnce, workspace.ChooseSession, workspace.ChooseDeny} {
		value := buttonValue(asked, c)
		if len(value) > 64 {
			t.Errorf("%q is longer than networks take", value)
		}
		if p := readButton(value); p == nil || *p != (workspace.Press{Approval: asked, Choice: c}) {
			t.Errorf("%q: %v", value, p)
		}
	}
	for _, value := range []string{"", "once", "approval:", "approval:" + string(asked), "approval:" + string(asked) + ":", "approval:short:once",
		"approval:" + string(asked) + ":always", "approval:" + string(asked) + ":once ", "approval:" + string(asked) + ":once:deny",
		"/approve " + string(asked) + " once", "Approval:" + string(asked) + ":once"} {
		if p := readButton(value); p != nil {
			t.Errorf("%q decides %v", value, *p)
		}
	}
}

// A press is journalled as a value. An earlier version journalled it as the command that people type, and an upgrade may find
// such a row that is not done yet.
func TestAJournalledPressIsReadBack(t *testing.T) {
	t.Parallel()
	once := &workspace.Press{Approval: asked, Choice: workspace.ChooseOnce}
	for name, c := range map[string]struct {
		kind channels.Kind
		text string
		data *workspace.Press
		want *workspace.Press
	}{
		"a press":                     {channels.KindButton, "approval:" + string(asked) + ":once", once, once},
		"an earlier version's":        {channels.KindButton, "/approve " + string(asked) + " once", nil, once},
		"no press at all":             {channels.KindButton, "/status", nil, nil},
		"a quoted yes":                {channels.KindMessage, "Yes!", once, once},
		"edited to a no":              {channels.KindMessage, "no", once, nil},
		"edited to something else":    {channels.KindMessage, "yes, but in the other folder", once, nil},
		"a command":                   {channels.KindMessage, "/approve 3f2a9c once", nil, nil},
		"an earlier version's quoted": {channels.KindMessage, "/approve " + string(asked) + " once", nil, nil}, // read as a command
	} {
		got := (&Questions{}).PressOf(workspace.Input{Kind: c.kind, Text: c.text, Data: workspace.InputData{Press: c.data}})
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
