package gateway_test

import (
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
)

// A question that the network took without saying so is asked again. Both copies can be answered, and neither keeps its
// buttons: the one that nobody knows of is closed by its press.
func TestAQuestionThatWasSentTwiceIsClosedTwice(t *testing.T) {
	t.Parallel()
	for name, press := range map[string][]int{"the orphan decides": {0}, "the stray one comes too late": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act := newAct()
			r := actRig(t, act, "")
			ana := r.person(11)
			r.tg.AddFault(telegramtest.Fault{Method: "sendMessage", Do: telegramtest.CutAfter, Times: 1})
			r.say(ana, 11, "act")
			asked := func(v telegramtest.View) (list []telegramtest.Message) {
				for _, m := range v.Sent(ana.ID) {
					if strings.Contains(m.Text, "rm -rf /tmp/x") && !strings.Contains(m.Text, "result") {
						list = append(list, m)
					}
				}
				return list
			}
			r.until("both", func(v telegramtest.View) bool { return len(asked(v)) == 2 })
			both := asked(r.tg.View())
			for _, i := range press {
				r.tg.Press(ana.ID, both[i].ID, user(11), button(t, both[i], "Once"))
				r.until("the pressed one is closed", func(v telegramtest.View) bool {
					m := asked(v)[i]
					return len(m.Buttons) == 0 && strings.Contains(m.Text, `Approved once by ana (owner) "Ana"`)
				})
			}
			r.said(ana, "acted 1")
			r.until("both are closed", func(v telegramtest.View) bool {
				list := asked(v)
				return len(list) == 2 && len(list[0].Buttons)+len(list[1].Buttons) == 0
			})
			if n := act.ran.Load(); n != 1 {
				t.Errorf("it ran %d times", n)
			}
		})
	}
}
