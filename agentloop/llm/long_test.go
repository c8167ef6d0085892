package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"parley/agentloop/llm"
)

// R20: long answers share the memory that they are given: what is beyond it waits its turn, and who leaves holds nothing up.
func TestR20_LongAnswersShareTheirMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := llm.NewBudget(100)
		hold := func() *llm.Hold { return &llm.Hold{Budget: budget} }
		first, second, third, fourth := hold(), hold(), hold(), hold()
		for _, h := range []*llm.Hold{first, second, first} { // the last asks again for what it has
			if err := h.Grow(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		left, got := make(chan error, 1), make(chan error, 1)
		go func() { left <- third.Grow(ctx, 1000) }() // more than there is: all of it
		synctest.Wait()
		go func() { got <- fourth.Grow(t.Context(), 50) }()
		synctest.Wait()
		if bytes, waiting := budget.Held(); bytes != 100 || waiting != 2 {
			t.Errorf("%d bytes held, %d wait", bytes, waiting)
		}
		gone := errors.New("gone")
		cancel(gone)
		if err := <-left; !errors.Is(err, gone) {
			t.Errorf("left with %v", err)
		}
		first.Release()
		first.Release()
		if err := <-got; err != nil {
			t.Error(err)
		}
		for _, h := range []*llm.Hold{second, third, fourth, nil, {}} {
			h.Release()
		}
		if err := third.Grow(t.Context(), 1000); err != nil {
			t.Error(err)
		}
		if bytes, waiting := budget.Held(); bytes != 100 || waiting != 0 {
			t.Errorf("%d bytes held, %d wait", bytes, waiting)
		}
	})
}
