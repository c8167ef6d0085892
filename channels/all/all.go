// Package all lists the networks that are built in. It is a list and nothing else: no registry, no init.
package all

import (
	"parley/channels"
	"parley/channels/discord"
	"parley/channels/slack"
	"parley/channels/telegram"
)

// Factories are the networks, in the order in which help and documents show them.
func Factories() []channels.Factory {
	list := []channels.Factory{
		withSetup(telegram.Factory(), telegramSetup()),
		withSetup(slack.Factory(), slackSetup()),
		withSetup(discord.Factory(), discordSetup()),
	}
	return append(list, linked()...)
}

func withSetup(f channels.Factory, s channels.Setup) channels.Factory {
	f.Setup = s
	return f
}
