package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// Offer hands a batch to the gateway, once. A panic over there is logged, and takes nothing, like an error: the connection
// lives on, and what was not taken is not acknowledged.
func Offer(ctx context.Context, in Intake, log *slog.Logger, batch ...Inbound) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic while a batch was taken", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("the gateway failed while it took the batch")
		}
	}()
	return in.Receive(ctx, batch...)
}
