package slack

import "strings"

// emojis are Slack's names of those that people react with most; what is not here is told by its name.
func emojis() map[string]string {
	return map[string]string{
		"+1": "👍", "-1": "👎", "eyes": "👀", "heart": "❤️", "white_check_mark": "✅", "heavy_check_mark": "✔️", "x": "❌", "tada": "🎉", "joy": "😂", "smile": "😄",
		"slightly_smiling_face": "🙂", "grin": "😁", "laughing": "😆", "rolling_on_the_floor_laughing": "🤣", "wink": "😉", "thinking_face": "🤔", "cry": "😢", "sob": "😭",
		"open_mouth": "😮", "rage": "😡", "angry": "😠", "confused": "😕", "disappointed": "😞", "scream": "😱", "sunglasses": "😎", "heart_eyes": "😍", "kissing_heart": "😘",
		"clap": "👏", "raised_hands": "🙌", "pray": "🙏", "wave": "👋", "ok_hand": "👌", "muscle": "💪", "point_up": "☝️", "fire": "🔥", "100": "💯", "rocket": "🚀", "star": "⭐",
		"sparkles": "✨", "bulb": "💡", "warning": "⚠️", "question": "❓", "exclamation": "❗", "no_entry": "⛔", "no_entry_sign": "🚫", "hourglass": "⌛", "hourglass_flowing_sand": "⏳",
		"stopwatch": "⏱️", "zzz": "💤", "lock": "🔒", "unlock": "🔓", "key": "🔑", "bug": "🐛", "wrench": "🔧", "hammer": "🔨", "gear": "⚙️", "memo": "📝", "pushpin": "📌",
		"bell": "🔔", "mag": "🔍", "speech_balloon": "💬", "robot_face": "🤖", "skull": "💀", "ghost": "👻", "poop": "💩", "see_no_evil": "🙈", "broken_heart": "💔", "blue_heart": "💙",
		"green_heart": "💚", "yellow_heart": "💛", "purple_heart": "💜", "coffee": "☕", "beers": "🍻", "pizza": "🍕", "cake": "🍰", "sunny": "☀️", "snowflake": "❄️", "zap": "⚡",
		"heavy_plus_sign": "➕", "heavy_minus_sign": "➖", "arrow_up": "⬆️", "arrow_down": "⬇️", "repeat": "🔁", "one": "1️⃣", "two": "2️⃣", "three": "3️⃣",
	}
}

func aliases() map[string]string {
	return map[string]string{"thumbsup": "+1", "thumbsdown": "-1", "satisfied": "laughing", "hankey": "poop", "shit": "poop", "rofl": "rolling_on_the_floor_laughing"}
}

// emojiOf is the emoji of a name; one that is not known is :name:. Skin tones are left out.
func emojiOf(name string) string {
	name, _, _ = strings.Cut(name, "::")
	if other, ok := aliases()[name]; ok {
		name = other
	}
	if e, ok := emojis()[name]; ok {
		return e
	}
	return ":" + name + ":"
}

// nameOf is Slack's name of an emoji; empty: it is not known.
func nameOf(emoji string) string {
	bare := strings.TrimSuffix(emoji, "\ufe0f")
	for name, e := range emojis() {
		if strings.TrimSuffix(e, "\ufe0f") == bare {
			return name
		}
	}
	if n := strings.Trim(emoji, ":"); n != emoji && n != "" && !strings.ContainsFunc(n, func(r rune) bool { return r > 127 || r == ' ' }) {
		return n
	}
	return ""
}
