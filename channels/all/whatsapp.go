//go:build !nowhatsapp

package all

import (
	"parley/channels"
	"parley/channels/whatsapp"
)

// linked are the networks that a binary can be built without: WhatsApp's library is under the GPL, and so is what holds it.
func linked() []channels.Factory { return []channels.Factory{whatsapp.Factory()} }
