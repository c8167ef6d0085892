package channels

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"
)

// Why a network is not reached is said in plain words; what it says itself stays as it is.
func TestCauseIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	for says, err := range map[string]error{
		"the name api.telegram.org cannot be looked up": &url.Error{Op: "Post", URL: "https://api.telegram.org/botX/getMe",
			Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "api.telegram.org", IsNotFound: true}}},
		"the connection is refused":    &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
		"there is no route to it":      syscall.ENETUNREACH,
		"no answer came in time":       fmt.Errorf("ask: %w", context.DeadlineExceeded),
		"the chat is gone (forbidden)": errors.New("the chat is gone (forbidden)"),
	} {
		if got := CauseOf(&Error{Class: Retry, Err: fmt.Errorf("telegram getMe: %w", err)}); got != says && got != "telegram getMe: "+says {
			t.Errorf("%v: %q, want %q", err, got, says)
		}
	}
}
