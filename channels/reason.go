package channels

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// reason is why a network was not reached, in plain words; empty: err says something else.
func reason(err error) string {
	var lookup *net.DNSError
	var cert *tls.CertificateVerificationError
	var late net.Error
	switch {
	case errors.As(err, &lookup):
		return "the name " + lookup.Name + " cannot be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it"
	case errors.As(err, &cert):
		return "its certificate is not trusted"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return "no answer came in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed before an answer"
	}
	return ""
}
