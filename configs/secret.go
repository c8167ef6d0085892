package configs

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a credential. However it is printed, marshalled or logged, it shows [secret], or nothing when it is empty; only
// Reveal gives it. Two things in Go look past a type's methods: it must not be the key of a map that is marshalled to JSON, nor
// be printed with %p.
type Secret string

const masked = "[secret]"

// Reveal is the credential itself.
func (s Secret) Reveal() string { return string(s) }

// String is the mask.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString is the mask, for %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes the mask whatever the verb is: %x would show the bytes otherwise.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text) // fmt.State keeps no error
}

// MarshalText is the mask, for XML and flags.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is the mask.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }

// MarshalYAML is the mask.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue is the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
