//go:build !race

package crashtest

import "testing"

// row is one network, or one story, under one kind of trouble, and what its people may see at the worst.
type row struct {
	name  string                // the promises that it proves, where, and what happens
	run   func(*testing.T, row) // the kind
	net   func(w *town) network // of a kind that is tried on several
	few   int                   // kills, rounds or messages where PARLEY_KILLS does not say how many
	twice int                   // answers that may come twice after a kill: more than 0 where the network cannot be asked what was sent
	doubt bool                  // a part was in doubt after a kill, or nothing is proven
	blind bool                  // the daemon writes with synchronous=OFF: nearly all that is looked for must be found missing
}

// table is what may happen to a daemon. Of each row this holds: no message is lost, none is answered to somebody else or out
// of order, none is left half-said, and the daemon's books are in order.
func table() []row {
	return append([]row{
		{name: "R01_R05_telegram_killed_at_random", run: killedAtRandom, few: 12, twice: 2, doubt: true},
		{name: "R05_telegram_killed_at_every_point", run: killedAtEveryPoint, twice: 2, doubt: true},
		{name: "R08_telegram_ended_under_load", run: drained, few: 3, twice: 2},
		{name: "R09_telegram_on_a_full_disk", run: fullDisk, twice: 2},
		{name: "R03_telegram_storm", run: redelivered, few: 1000},
		{name: "R01_telegram_acknowledged", run: acknowledged, net: onTelegram, few: 5},
		{name: "R01_telegram_acknowledged_without_fsync", run: acknowledged, net: onTelegram, few: 5, blind: true},

		{name: "R01_R05_slack_killed", run: killed, net: onSlack, few: 8, doubt: true},
		{name: "R03_slack_storm", run: storm, net: onSlack, few: 6},
		{name: "R01_slack_acknowledged", run: acknowledged, net: onSlack, few: 5},
		{name: "R01_slack_acknowledged_without_fsync", run: acknowledged, net: onSlack, few: 5, blind: true},

		{name: "R01_R05_discord_killed", run: killed, net: onDiscord, few: 6}, // it has no acknowledgements
		{name: "R03_discord_storm", run: storm, net: onDiscord, few: 6},

		{name: "R04_approval_killed_at_every_line", run: approvedAtEveryLine},
		{name: "R04_act_killed_at_every_commit", run: notRunAgain, few: 8},
		{name: "R04_command_killed_under_way", run: underWay},
		{name: "R05_prompt_killed_while_it_changes", run: promptsChanged},
		{name: "R05_T18_file_killed_while_it_is_fetched", run: fetched},
	}, onWhatsAppToo()...)
}

func TestTable(t *testing.T) {
	for _, r := range table() {
		t.Run(r.name, func(t *testing.T) { r.run(t, r) })
	}
}

// mayRepeat is how many answers may come twice after a kill while twenty chats talk. In the small run, which shares the
// machine, an answer that was taken waits for a processor before that can be noted: the promise is measured by itself, with
// PARLEY_KILLS.
func (r row) mayRepeat() int {
	if full() {
		return r.twice
	}
	return 4 * r.twice
}
