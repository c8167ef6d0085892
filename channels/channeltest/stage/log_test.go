package stage_test

import (
	"context"
	"fmt"
	"testing"

	"parley/channels/channeltest/stage"
)

func TestALogIsWaitedFor(t *testing.T) {
	var log stage.Log
	said := make(chan error)
	go func() { said <- log.Wait(t.Context(), "ready", 2) }()
	for range 2 {
		fmt.Fprintln(&log, "ready")
	}
	if err := <-said; err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Wait(ended, "ready", 3); err == nil {
		t.Error("a third line was waited for that never came")
	}
}
