package gateway_test

import (
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
)

// What others said in a group is quoted by the next turn, also when the gateway was started anew in between.
func TestTurnQuotesWhatWasSaidBeforeARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	group := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	r.say(group, 11, "@parley_test_bot hello")
	r.wait(group, 1)
	r.say(group, 11, "we meet at nine")
	r.until("the line is taken", func(v telegramtest.View) bool { return v.Pending() == 0 })
	r.stop()
	r.start(nil)
	r.say(group, 12, "@parley_test_bot when do we meet?")
	r.wait(group, 2)
	bodies := r.llm.Bodies()
	if last := bodies[len(bodies)-1]; strings.Count(last, "we meet at nine") != 1 {
		t.Errorf("the turn quotes the line %d times, want once", strings.Count(last, "we meet at nine"))
	}
	r.say(group, 12, "@parley_test_bot thanks")
	r.wait(group, 3)
	bodies = r.llm.Bodies()
	last := bodies[len(bodies)-1]
	if _, asked, _ := strings.Cut(last, "## Now"); strings.Contains(asked, "we meet at nine") {
		t.Errorf("the next turn quotes the line again: %s", asked)
	}
}
