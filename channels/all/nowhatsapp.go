//go:build nowhatsapp

package all

import (
	"errors"

	"parley/channels"
)

// absent stands for WhatsApp in a binary without it, so that a configuration that names it is told why.
type absent struct {
	DeviceName string `yaml:"device_name" doc:"Of no use in this binary."`
	Version    string `yaml:"client_version" doc:"Of no use in this binary."`
	Grow       bool   `yaml:"stream_edits" doc:"Of no use in this binary."`
	MarkRead   bool   `yaml:"mark_read" doc:"Of no use in this binary."`
	APIURL     string `yaml:"api_url" doc:"Of no use in this binary."`
	RootKey    string `yaml:"root_key" doc:"Of no use in this binary."`
}

// errAbsent follows the word "type".
var errAbsent = errors.New("whatsapp is not in this binary, which was built with the tag nowhatsapp: use the default one, or take the channel out")

// Validate refuses it.
func (*absent) Validate() error { return &channels.OptionError{Name: "type", Err: errAbsent} }

// linked has WhatsApp's place only.
func linked() []channels.Factory {
	return []channels.Factory{{
		Network: "whatsapp",
		Options: func() any { return &absent{} },
		New:     func(string, any, channels.Deps) (channels.Channel, error) { return nil, errAbsent },
	}}
}
