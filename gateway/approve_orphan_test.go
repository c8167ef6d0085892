package gateway_test

import (
	"strings"

	"parley/channels/telegram/telegramtest"
	"parley/workspace"
)

// A question that the network took without saying so is asked again. Both copies can be answered, and neither keeps its
// buttons: the one that nobody knows of is closed by its press.
func askedTwice(press ...int) func(*rig) {
	return func(r *rig) {
		r.answers(acts("rm -rf /tmp/x"))
		ana := r.person(11)
		r.tg.AddFault(telegramtest.Fault{Chat: ana.ID, Method: "sendMessage", Do: telegramtest.CutAfter, Times: 1})
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
			r.tg.Press(ana.ID, both[i].ID, r.user(11), button(r.t, both[i], "Once"))
			r.until("the pressed one is closed", func(v telegramtest.View) bool {
				m := asked(v)[i]
				return len(m.Buttons) == 0 && strings.Contains(m.Text, "Approved once by "+r.who("ana", workspace.Owner, 11))
			})
		}
		r.said(ana, "acted 1")
		r.until("both are closed", func(v telegramtest.View) bool {
			list := asked(v)
			return len(list) == 2 && len(list[0].Buttons)+len(list[1].Buttons) == 0
		})
		if n := r.slot.act.ran.Load(); n != 1 {
			r.t.Errorf("it ran %d times", n)
		}
	}
}
