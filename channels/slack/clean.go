package slack

import "strings"

// redactor replaces the configured secrets, and the half of a token that is one, wherever they stand in a text. Parts
// shorter than 8 bytes would be found in innocent words.
func (o *Options) redactor() *strings.Replacer {
	var pairs []string
	for _, s := range []string{o.BotToken.Reveal(), o.AppToken.Reveal(), o.SigningSecret.Reveal()} {
		for _, part := range []string{s, s[strings.LastIndex(s, "-")+1:]} {
			if len(part) >= 8 {
				pairs = append(pairs, part, o.BotToken.String())
			}
		}
	}
	return strings.NewReplacer(pairs...)
}
