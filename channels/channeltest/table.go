package channeltest

import (
	"parley/channels"
)

// Capability is something that networks can or cannot do.
type Capability string

// Need says whether a network's adapter must have a capability.
type Need string

const (
	Required Need = "required" // lacking it fails
	Possible Need = "possible" // tested when the adapter has it
	Absent   Need = "absent"   // the network has no such thing: claiming it fails
)

const (
	Receiving   Capability = "receive"
	Acks        Capability = "acknowledgement"
	Groups      Capability = "identity of groups"
	Threads     Capability = "identity of threads"
	Mentions    Capability = "mentions of the bot"
	OwnMessages Capability = "own messages"
	Replies     Capability = "replies in"
	EditsIn     Capability = "edits in"
	DeletesIn   Capability = "deletes in"
	ReactionsIn Capability = "reactions in"
	Buttons     Capability = "buttons"
	Commands    Capability = "native commands"
	Unreadable  Capability = "unreadable events"
	FilesIn     Capability = "files in"
	Albums      Capability = "albums"
	Moves       Capability = "rooms that move"
	Sending     Capability = "send"
	Editing     Capability = "edit"
	Deleting    Capability = "delete"
	Reacting    Capability = "react"
	Typing      Capability = "typing"
	FilesOut    Capability = "files out"
	Menu        Capability = "command menu"
	Streaming   Capability = "stream"
	AfterCrash  Capability = "find or repeat after a crash"
	History     Capability = "history"
	Login       Capability = "login states"
	Checking    Capability = "checks"
	Markup      Capability = "markup that can be refused"
	Failing     Capability = "classified failures"
	FloodTimes  Capability = "the time of a flood wait"
	Living      Capability = "life of the connection"
)

// row is a capability over the networks, in the order of networks.
type row struct {
	of    Capability
	needs [5]Need
}

func networks() [5]channels.Network {
	return [5]channels.Network{"telegram", "slack", "discord", "whatsapp", "webchat"}
}

// table is channels-guide and design in one view.
func table() []row {
	const R, P, A = Required, Possible, Absent
	return []row{
		//            telegram slack discord whatsapp webchat
		{Receiving, [5]Need{R, R, R, R, R}},
		{Acks, [5]Need{R, R, A, R, R}}, // Discord cannot be held back: it is read again at every connect
		{Groups, [5]Need{R, R, R, R, A}},
		{Threads, [5]Need{R, R, R, A, A}},     // WhatsApp has none
		{Mentions, [5]Need{R, R, R, R, A}},    // in WebChat everything is to us
		{OwnMessages, [5]Need{R, R, R, R, A}}, // never heard as if a person had written them
		{Replies, [5]Need{R, A, R, R, A}},     // Slack's replies are threads
		{EditsIn, [5]Need{R, R, R, R, P}},
		{DeletesIn, [5]Need{A, R, R, R, P}}, // the Bot API tells of no deletion
		{ReactionsIn, [5]Need{R, R, R, R, A}},
		{Buttons, [5]Need{R, R, R, A, R}}, // WhatsApp does not show them reliably
		{Commands, [5]Need{R, R, R, P, R}},
		{Unreadable, [5]Need{R, R, R, P, P}},
		{FilesIn, [5]Need{R, R, R, R, R}},
		{Albums, [5]Need{R, A, A, P, A}}, // elsewhere one message has many files
		{Moves, [5]Need{R, A, A, A, A}},  // a group becomes a supergroup
		{Sending, [5]Need{R, R, R, R, R}},
		{Editing, [5]Need{R, R, R, R, R}},
		{Deleting, [5]Need{R, R, R, R, R}},
		{Reacting, [5]Need{R, R, R, R, A}},
		{Typing, [5]Need{R, P, R, R, R}}, // Slack only in assistant threads
		{FilesOut, [5]Need{R, R, R, R, R}},
		{Menu, [5]Need{R, A, R, A, P}},       // Slack's is in its manifest
		{Streaming, [5]Need{A, R, A, A, P}},  // elsewhere by edits
		{AfterCrash, [5]Need{A, R, R, R, R}}, // Telegram can neither dedupe nor be asked
		{History, [5]Need{A, R, R, A, A}},
		{Login, [5]Need{A, A, A, R, A}},
		{Checking, [5]Need{R, R, R, R, P}},
		{Markup, [5]Need{R, A, A, A, A}}, // the others show broken markup as text
		{Failing, [5]Need{R, R, R, R, R}},
		{FloodTimes, [5]Need{R, R, R, A, R}}, // WhatsApp says that it is too fast, and not for how long
		{Living, [5]Need{R, R, R, R, R}},
	}
}

// Needs is the column of a network; nil for a network that the table does not know.
func Needs(n channels.Network) func(Capability) Need {
	for i, name := range networks() {
		if name != n {
			continue
		}
		return func(c Capability) Need {
			for _, r := range table() {
				if r.of == c {
					return r.needs[i]
				}
			}
			return Required
		}
	}
	return nil
}

// claim is what an adapter says of a capability.
type claim int

const (
	unsaid claim = iota // only behaviour shows it
	yes
	no
)

// claims looks at the optional interfaces.
func claims(ch channels.Channel, c Capability) claim {
	traits := traitsOf(ch)
	switch c {
	case Editing:
		return is[channels.Editor](ch)
	case Deleting:
		return is[channels.Deleter](ch)
	case Reacting:
		return is[channels.Reactor](ch)
	case Typing:
		return is[channels.Typer](ch)
	case Menu:
		return is[channels.MenuPublisher](ch)
	case Streaming:
		return is[channels.Streamer](ch)
	case History:
		return is[channels.Historian](ch)
	case Login:
		return is[channels.Linker](ch)
	case Checking:
		return is[channels.Checker](ch)
	case FilesIn:
		return is[channels.Opener](ch)
	case AfterCrash:
		if traits.Idempotent {
			return yes
		}
		return is[channels.Finder](ch)
	case Threads:
		return said(traits.Threads)
	case Buttons:
		return said(traits.Buttons)
	case FilesOut:
		return said(traits.MaxFile > 0)
	}
	return unsaid
}

func is[C any](ch channels.Channel) claim {
	_, ok := channels.As[C](ch)
	return said(ok)
}

func said(ok bool) claim {
	if ok {
		return yes
	}
	return no
}

func traitsOf(ch channels.Channel) channels.Traits {
	if d, ok := channels.As[channels.Describer](ch); ok {
		return d.Traits()
	}
	return channels.Traits{}
}
