package all

import "parley/channels"

// pairing is what comes next on every network.
const pairing = "Write to it there. It answers a stranger with a code: approve the code as an owner for yourself."

func telegramSetup() channels.Setup {
	return channels.Setup{Title: "Telegram", Name: "tg",
		Steps: []string{
			"Open [@BotFather](https://t.me/BotFather) in Telegram and send `/newbot`.",
			"Choose a name, then a user name that ends in `bot`.",
			"BotFather answers with the token, such as `123456:ABC…`. Copy it. Whoever has it is the bot.",
		},
		Links: []channels.Link{{Title: "BotFather", URL: "https://t.me/BotFather"}},
		Fields: []channels.SetupField{{Key: "token", Title: "Bot token", Secret: true, Needed: true, Placeholder: "123456:ABC…",
			Help: "From BotFather: digits, a colon, and 35 letters and digits."}},
		After: []string{pairing},
	}
}

func slackSetup() channels.Setup {
	return channels.Setup{Title: "Slack", Name: "slack",
		Steps: []string{
			"Open the link *Create the app*: it brings the manifest along. Choose your workspace, then **Next** and **Create**. " +
				"Or choose **Create New App**, **From a manifest** at [api.slack.com/apps](https://api.slack.com/apps) and paste the " +
				"manifest, which `parley channel manifest slack` prints.",
			"Under **Install App**, install it to the workspace. Slack shows the **bot token**, `xoxb-…`.",
			"Under **Basic Information**, **App-Level Tokens**, choose **Generate**, add the scope `connections:write`, and copy the " +
				"**app token**, `xapp-…`.",
		},
		Links: []channels.Link{{Title: "Your Slack apps", URL: "https://api.slack.com/apps"}},
		Fields: []channels.SetupField{
			{Key: "bot_token", Title: "Bot token", Secret: true, Needed: true, Placeholder: "xoxb-…",
				Help: "From Install App, later under OAuth & Permissions."},
			{Key: "app_token", Title: "App token", Secret: true, Needed: true, Placeholder: "xapp-…",
				Help: "From Basic Information, App-Level Tokens, with connections:write."},
		},
		After: []string{"In Slack, open Apps, choose it, and open Messages. " + pairing,
			"In a channel, invite it with `/invite @Parley`, and allow the channel's id in `access.allow`."},
	}
}

func discordSetup() channels.Setup {
	return channels.Setup{Title: "Discord", Name: "dc",
		Steps: []string{
			"Open the [developer portal](https://discord.com/developers/applications) and choose **New Application**. Its name is what " +
				"people see.",
			"Under **Installation**, set *Install Link* to **None**. Then under **Bot**, switch **Public Bot** off.",
			"Still under **Bot**, in **Privileged Gateway Intents**, switch on **Message Content Intent** and save.",
			"Choose **Reset Token** and copy the token. It is shown once.",
		},
		Links: []channels.Link{{Title: "Discord developer portal", URL: "https://discord.com/developers/applications"}},
		Fields: []channels.SetupField{{Key: "token", Title: "Bot token", Secret: true, Needed: true, Placeholder: "MTE5…",
			Help: "From Bot, Reset Token, without the word Bot before it."}},
		After: []string{"Test the channel: it prints the address with which you add the bot to a server. Open that, and choose the server.",
			pairing},
	}
}
