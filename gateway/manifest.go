package gateway

import (
	"fmt"
	"slices"
	"strings"

	"parley/channels"
	"parley/gateway/command"
	"parley/gateway/logbook"
)

// Manifest is the description of the app that a network wants before there is an account: what to paste at the network's
// own site. names offers every command under its own name, beside the one that takes them all.
func Manifest(factories []channels.Factory, network, name, url string, names bool) ([]byte, error) {
	var have []string
	for _, f := range factories {
		if f.Manifest == nil {
			continue
		}
		have = append(have, string(f.Network))
		if string(f.Network) != network {
			continue
		}
		ask := channels.ManifestAsk{Name: name, URL: url}
		if names {
			ask.Commands = slices.Clone(command.Menu())
		}
		return f.Manifest(ask)
	}
	return nil, fmt.Errorf("only these networks want a manifest: %s", strings.Join(have, ", "))
}

// Slash is a slash command, for who types it.
type Slash struct {
	Name, Args, Help string
	Choices          []string // words that the first argument may be, as far as they are known
}

// Slashes lists the slash commands in the order of /help.
func Slashes() []Slash {
	var list []Slash
	for _, c := range command.Table() {
		s := Slash{c.Name, c.Args, c.Help, c.Choices}
		if s.Choices == nil {
			s.Choices = wordsOf(c.Args)
		}
		list = append(list, s)
	}
	return list
}

// wordsOf are the words among the first alternatives of a usage line: list and default of [list|<name>|default].
func wordsOf(usage string) []string {
	first, _, _ := strings.Cut(strings.TrimPrefix(usage, "["), "]")
	if !strings.Contains(first, "|") {
		return nil
	}
	var words []string
	for alternative := range strings.SplitSeq(first, "|") {
		if word, _, _ := strings.Cut(alternative, " "); word != "" && !strings.HasPrefix(word, "<") {
			words = append(words, word)
		}
	}
	return words
}

// NewLogbook is a book for Options.Book; its Handler goes behind what takes secrets out of the log.
func NewLogbook() *logbook.Book { return &logbook.Book{} }
