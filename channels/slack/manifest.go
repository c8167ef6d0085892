package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/channels"
)

// mainCommand takes the names of all commands as its first word.
const mainCommand = "parley"

// taken are Slack's own commands, which no app can have (https://slack.com/help/articles/201259356).
func taken() []string {
	return []string{"active", "apps", "archive", "away", "call", "collapse", "dm", "dnd", "expand", "feed", "feedback", "help", "huddle", "invite", "invite_people", "join",
		"keys", "kick", "leave", "me", "msg", "mute", "open", "part", "people", "prefs", "remind", "remove", "rename", "search", "shortcuts", "shrug", "star", "status", "topic", "who"}
}

// Manifest is the app as https://api.slack.com/apps takes it at "From a manifest": scopes, events, the command. Without a
// URL it uses Socket Mode. Commands beside /parley are offered under their own names where Slack has none of that name.
func Manifest(ask channels.ManifestAsk) ([]byte, error) {
	name := strings.TrimSpace(ask.Name)
	if n := len([]rune(name)); n < 1 || n > 35 {
		return nil, fmt.Errorf("the app's name %q must have 1 to 35 characters", ask.Name)
	}
	if ask.URL != "" && !strings.HasPrefix(ask.URL, "https://") {
		return nil, fmt.Errorf("the address %q must begin with https://: Slack posts to no other", ask.URL)
	}
	var commands []obj
	command := func(name, help, hint string) {
		o := obj{"command": "/" + name, "description": help, "should_escape": true}
		if hint != "" {
			o["usage_hint"] = hint
		}
		if ask.URL != "" {
			o["url"] = ask.URL
		}
		commands = append(commands, o)
	}
	command(mainCommand, "Commands for your agent", "help | new | stop | status | …")
	for _, it := range ask.Commands {
		if it.Name != mainCommand && !slices.Contains(taken(), it.Name) {
			command(it.Name, it.Help, "")
		}
	}
	var bot []string
	for _, s := range scopes() {
		bot = append(bot, s[0])
	}
	interactivity, subscriptions := obj{"is_enabled": true}, obj{"bot_events": events()}
	if ask.URL != "" {
		interactivity["request_url"], subscriptions["request_url"] = ask.URL, ask.URL
	}
	return json.MarshalIndent(obj{
		"display_information": obj{"name": name, "description": "Agents that work in your chats"},
		"features": obj{
			"bot_user":       obj{"display_name": name, "always_online": true},
			"app_home":       obj{"home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false}, // else nobody can write to it
			"slash_commands": commands,
		},
		"oauth_config": obj{"scopes": obj{"bot": bot}},
		"settings": obj{"socket_mode_enabled": ask.URL == "", "interactivity": interactivity, "event_subscriptions": subscriptions,
			"org_deploy_enabled": false, "token_rotation_enabled": false},
	}, "", "  ")
}

type obj = map[string]any

// events are what the app subscribes to.
func events() []string {
	return []string{"app_mention", "message.channels", "message.groups", "message.im", "message.mpim", "reaction_added", "reaction_removed"}
}
