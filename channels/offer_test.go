package channels_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"parley/channels"
)

// taker is an Intake that does with a batch what the test says.
type taker struct {
	channels.Intake
	take func(batch []channels.Inbound) error
}

func (t taker) Receive(_ context.Context, batch ...channels.Inbound) error { return t.take(batch) }

func TestOfferGivesTheWholeBatchAndWhatTheGatewaySaid(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, channels.ErrBusy} {
		in := taker{take: func(batch []channels.Inbound) error {
			if len(batch) != 2 || batch[0].Key != "a" || batch[1].Key != "b" {
				t.Errorf("offered %+v", batch)
			}
			return want
		}}
		if err := channels.Offer(t.Context(), in, slog.New(slog.DiscardHandler), channels.Inbound{Key: "a"}, channels.Inbound{Key: "b"}); !errors.Is(err, want) {
			t.Errorf("%v came of %v", err, want)
		}
	}
}

func TestOfferTurnsAPanicIntoAnErrorAndALine(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	in := taker{take: func([]channels.Inbound) error { panic("the journal fell over") }}
	if err := channels.Offer(t.Context(), in, slog.New(slog.NewTextHandler(&log, nil)), channels.Inbound{}); err == nil {
		t.Error("a panic counts as taken")
	}
	if line := log.String(); !strings.Contains(line, "the journal fell over") || !strings.Contains(line, "offer_test.go") {
		t.Errorf("logged: %s", line)
	}
}
