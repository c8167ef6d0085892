package benchtest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// row is a line of the table. ok judges the gateway's median beside the others'; nil: the row is only shown.
type row struct {
	what, unit string
	figure     string
	digits     int
	target     string
	ok         func(r *bench, got float64) bool
}

func atMost(limit float64) func(*bench, float64) bool {
	return func(_ *bench, got float64) bool { return got <= limit }
}

func atLeast(limit float64) func(*bench, float64) bool {
	return func(_ *bench, got float64) bool { return got >= limit }
}

// ratio is at least or at most so many times the echo bot's figure of the same round.
func ratio(figure string, good func(float64) bool) func(*bench, float64) bool {
	return func(r *bench, _ float64) bool { return good(r.ratio(figure, echo)) }
}

func asFast(x float64) bool { return x >= 1 }

func asSlow(x float64) bool { return x <= 1.2 }

// quick allows the echo bot's time, two commits and half a millisecond, and at most five.
func quick(figure string) func(*bench, float64) bool {
	return func(r *bench, got float64) bool {
		return got <= 5 && got <= median(r.seen[figure][echo])+2*median(r.seen["fsync"][parley])+0.5
	}
}

var rows = []row{
	{"messages/s, 100 chats", "", "chats100 rate", 0, "≥ 1.0 × echo", ratio("chats100 rate", asFast)},
	{"messages/s, 1,000 chats", "", "chats1000 rate", 0, "≥ 1.0 × echo", ratio("chats1000 rate", asFast)},
	{"CPU per message, 100 chats", "ms", "chats100 cpu", 3, "≤ 0.25", atMost(0.25)},
	{"CPU per message, 1,000 chats", "ms", "chats1000 cpu", 3, "", nil},
	{"1 chat: p50", "ms", "chats1 p50", 2, "≤ echo + 2 fsync + 0.5, ≤ 5", quick("chats1 p50")},
	{"1 chat: p99", "ms", "chats1 p99", 2, "≤ echo + 2 fsync + 0.5, ≤ 5", quick("chats1 p99")},
	{"100 chats: p99", "ms", "chats100 p99", 1, "", nil},
	{"1,000 chats: p99", "ms", "chats1000 p99", 0, "≤ 1.2 × echo", ratio("chats1000 p99", asSlow)},
	{"30 chats, model of 1 s: p50", "ms", "slow30 p50", 0, "≤ 1020", atMost(1020)},
	{"durable line, no network: messages/s", "", "sessions=1000 msg/s", 0, "≥ 10000", atLeast(10_000)},
	{"… its waited commits a message", "", "sessions=1 waited/msg", 2, "≤ 2", atMost(2.005)},
	{"… its statements a message", "", "sessions=1 statements/msg", 2, "≤ 9", atMost(9.005)},
	{"first token to 200 pages: p50", "ms", "pages p50", 1, "", nil},
	{"… to the last of them", "ms", "pages last", 1, "≤ 150", atMost(150)},
	{"memory with 200 pages open", "MiB", "pages memory", 1, "", nil},
	{"disk a message, 100 chats", "KiB", "chats100 disk", 2, "≤ 4", atMost(4)},
	{"write calls a message, 100 chats", "", "chats100 calls", 2, "≤ 4, sockets included", atMost(4)},
	{"ready: start to first getUpdates", "ms", "ready", 1, "≤ 50", atMost(50)},
	{"… at the very first start", "ms", "first ready", 1, "", nil},
	{"memory after 30 s idle", "MiB", "idle", 1, "≤ 25", atMost(25)},
	{"… with all five networks", "MiB", "idle all", 1, "≤ 40", atMost(40)},
	{"memory 30 s after 1,000 sessions", "MiB", "after 1000", 1, "≤ 40", atMost(40)},
	{"peak, 1,000 messages at once", "MiB", "burst peak", 1, "≤ 100", atMost(100)},
	{"peak, 1,000 chats without a pause", "MiB", "chats1000 peak", 1, "≤ 100", atMost(100)},
	{"peak at ten times the load", "MiB", "overload", 1, "≤ 256", atMost(256)},
	{"stripped binary", "MB", "binary", 1, "≤ 45", atMost(45)},
	{"SIGKILL to the next answer", "ms", "kill", 1, "≤ 100", atMost(100)},
	{"20 chats: p95", "ms", "burn quiet", 1, "", nil},
	{"… while commands burn every core", "ms", "burn busy", 1, "", nil},
	{"… how many times that is (E36)", "×", "burn ratio", 2, "< 2", atMost(2)},
	{"20 chats: p95", "ms", "failing quiet", 1, "", nil},
	{"… while their model fails three others", "ms", "failing busy", 1, "", nil},
	{"… how many times that is", "×", "failing ratio", 2, "≤ 1.2", atMost(1.2)},
	{"100 MiB may be written: what stays (E34)", "MiB", "fill", 0, "≤ 120", atMost(120)},
	{"help", "ms", "help", 1, "", nil},
}

// ratio is the median of the rounds' ratios of the gateway to another.
func (r *bench) ratio(figure string, to int) float64 {
	got := r.seen[figure]
	var list []float64
	for i := range min(len(got[parley]), len(got[to])) {
		if got[to][i] > 0 {
			list = append(list, got[parley][i]/got[to][i])
		}
	}
	return median(list)
}

// print writes the table to standard output.
func (r *bench) print() {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%d cores, %s, fsync of 8 KiB p50 %.2f ms, medians of %d alternating rounds (min–max), default configuration.\n",
		runtime.NumCPU(), runtime.Version(), median(r.seen["fsync"][parley]), r.rounds)
	out.WriteString("The driver plays Telegram and the model on the same cores: compare columns, not machines. × is the median of the rounds' ratios to parley.\n\n")
	out.WriteString("| what | parley | echo | × echo | echo-pooled | × pooled | target | |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		got := r.seen[row.figure]
		if got == nil {
			continue
		}
		verdict := ""
		if row.ok != nil && row.ok(r, median(got[parley])) {
			verdict = "ok"
		} else if row.ok != nil {
			verdict = "MISS"
		}
		what := row.what
		if row.unit != "" {
			what += ", " + row.unit
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", what, row.cell(got[parley]), row.cell(got[echo]), r.times(row.figure, echo),
			row.cell(got[pooled]), r.times(row.figure, pooled), row.target, verdict)
	}
	r.compare(&out)
	for scene, n := range r.lost {
		if n > 0 {
			fmt.Fprintf(&out, "\n%s: %d answers did not come within %s.\n", scene, n, lostAfter)
		}
	}
	fmt.Fprint(os.Stdout, out.String())
}

func (row row) cell(list []float64) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%.*f", row.digits, list[0])
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", row.digits, median(list), row.digits, slices.Min(list), row.digits, slices.Max(list))
}

func (r *bench) times(figure string, to int) string {
	if x := r.ratio(figure, to); x > 0 {
		return fmt.Sprintf("%.2f", x)
	}
	return ""
}
