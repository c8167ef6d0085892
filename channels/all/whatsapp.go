//go:build !nowhatsapp

package all

import (
	"parley/channels"
	"parley/channels/whatsapp"
)

// linked are the networks that a binary can be built without: WhatsApp's library is under the GPL, and so is what holds it.
func linked() []channels.Factory {
	return []channels.Factory{withSetup(whatsapp.Factory(), channels.Setup{Title: "WhatsApp", Name: "wa", QR: true,
		Steps: []string{
			"Take a phone number of its own that you can lose: this is an unofficial client, and WhatsApp bans accounts for it now " +
				"and then.",
			"Have the number in use on a phone for a few days, and let people write first.",
			"Save the channel. Then link the phone: on it open **Settings**, **Linked devices**, **Link a device**, and scan the QR code.",
		},
		Links:  []channels.Link{{Title: "About linked devices", URL: "https://faq.whatsapp.com/378279804439436"}},
		Fields: []channels.SetupField{},
		After: []string{"Link the phone beside the running gateway: `parley channel login wa`, or the channels page of WebChat.",
			"Write to the number from another phone. It answers a stranger with a code: approve the code as an owner for yourself."},
	})}
}
