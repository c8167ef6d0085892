package channels

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a credential in a channel's options. However it is printed, marshalled or logged, it shows [secret]; only Reveal gives it.
type Secret string

const masked = "[secret]"

// Reveal is the credential itself.
func (s Secret) Reveal() string { return string(s) }

// String is the mask, or nothing when there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// Format writes the mask whatever the verb is: %x would show the bytes otherwise.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) } // fmt.State keeps no error

// MarshalText is the mask, for map keys and encoders that ask for text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is the mask.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }

// MarshalYAML is the mask.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue is the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
