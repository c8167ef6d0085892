package logbook_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"parley/gateway/logbook"
)

func TestTheNewestLinesAreKeptInOrder(t *testing.T) {
	t.Parallel()
	var b logbook.Book
	log := slog.New(b.Handler(slog.DiscardHandler))
	log.Info("nobody takes it")
	if list, _ := b.Read(logbook.Query{Limit: 10, Least: slog.LevelDebug}); len(list) != 0 {
		t.Fatalf("a line that the log does not take is kept: %v", list)
	}
	log = slog.New(b.Handler(slog.NewTextHandler(new(strings.Builder), nil)))
	for i := range 3000 {
		log.Info("line", "i", i)
	}
	list, upto := b.Read(logbook.Query{Limit: 5, Least: slog.LevelInfo})
	if len(list) != 5 || upto != 3000 || list[4].N != 3000 || list[4].Attrs[0] != (logbook.Attr{Key: "i", Value: "2999"}) {
		t.Errorf("newest: %v, %d", list, upto)
	}
	if all, _ := b.Read(logbook.Query{Limit: 9999}); len(all) != 2000 || all[0].N != 1001 {
		t.Errorf("%d lines are kept, from %d", len(all), all[0].N)
	}
	if list, upto = b.Read(logbook.Query{After: 2990, Limit: 4}); len(list) != 4 || list[0].N != 2991 || upto != 2994 {
		t.Errorf("after 2990: %v, %d", list, upto)
	}
	if list, _ = b.Read(logbook.Query{After: 1 << 40, Limit: 4}); len(list) != 4 || list[3].N != 3000 {
		t.Errorf("after a number of an earlier start: %v", list)
	}
}

func TestLongLinesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	var b logbook.Book
	log := slog.New(b.Handler(slog.NewTextHandler(new(strings.Builder), nil)))
	for range 500 {
		log.Info("long", "text", strings.Repeat("x", 10_000))
	}
	if all, _ := b.Read(logbook.Query{Limit: 9999}); len(all) < 90 || len(all) > 110 {
		t.Errorf("%d lines of 10 kB are kept", len(all))
	}
}

func TestLevelsGroupsAndCommonFacts(t *testing.T) {
	t.Parallel()
	var b logbook.Book
	log := slog.New(b.Handler(slog.NewTextHandler(new(strings.Builder), nil))).With("channel", "tg").WithGroup("net")
	log.Info("quiet")
	log.Warn("loud", slog.Group("peer", "id", 7), "n", 1)
	list, upto := b.Read(logbook.Query{Limit: 9, Least: slog.LevelWarn})
	if len(list) != 1 || upto != 2 || fmt.Sprint(list[0].Attrs) != "[{channel tg} {net.peer.id 7} {net.n 1}]" {
		t.Errorf("%v, %d", list, upto)
	}
	if list, upto = b.Read(logbook.Query{After: 1, Limit: 9, Least: slog.LevelError}); len(list) != 0 || upto != 2 {
		t.Errorf("a reader must not look at quiet lines twice: %v, %d", list, upto)
	}
}

func TestAReaderIsWokenByTheNextLine(t *testing.T) {
	t.Parallel()
	var b logbook.Book
	log := slog.New(b.Handler(slog.NewTextHandler(new(strings.Builder), nil)))
	var all sync.WaitGroup
	for range 4 {
		grew := b.Grew()
		all.Go(func() { <-grew })
	}
	log.Info("now")
	all.Wait()
}
