package telegram

import (
	"strings"

	"parley/channels"
)

// Secret is the bot token.
type Secret = channels.Secret

const masked = "[secret]"

// redactor replaces the token, and its secret half alone, wherever they stand in a text.
func redactor(s Secret) *strings.Replacer {
	token := s.Reveal()
	pairs := []string{token, masked, strings.ReplaceAll(token, ":", "%3A"), masked}
	// A short half would be found in innocent words; Telegram's has 35 characters.
	if _, half, ok := strings.Cut(token, ":"); ok && len(half) >= 8 {
		pairs = append(pairs, half, masked)
	}
	return strings.NewReplacer(pairs...)
}
