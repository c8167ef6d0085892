package turn

import (
	"testing"

	"parley/agentloop/lane"
)

// A turn that waits for a person, or is paused, does not run: lists, status and pages say which.
func TestAWaitingTurnDoesNotRun(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]lane.View{
		"idle":    {},
		"running": {Running: true},
		"waiting": {Running: true, Asleep: true, Held: "it waits for an owner to approve exec (approval abc)"},
		"paused":  {Running: true, Asleep: true, Held: whyPaused},
	} {
		if got := StateOf(v); got != want {
			t.Errorf("%+v is %s, want %s", v, got, want)
		}
	}
}
