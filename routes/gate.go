package routes

import (
	"slices"
	"strings"

	"parley/channels"
	"parley/workspace"
)

// Policies of Access. The empty string is the default of its field; anything else that is not listed here
// lets nobody in.
const (
	Pairing   = "pairing"   // DM only, default: strangers get a code
	Allowlist = "allowlist" // default for groups: ids in Allow
	Open      = "open"      // everybody, as a guest
	Disabled  = "disabled"  // nobody, not even an owner
)

// Values of Facts.Activation, which outrank Access.RequireMention for one room.
const (
	ActivateAlways  = "always"
	ActivateMention = "mention"
)

// Access is one channel's policy. Allow holds the network's own ids of users and rooms alike: a DM needs its
// sender's id in it, a group its room's id. Names never count, and there is no wildcard: that is Open.
type Access struct {
	DM             string
	Groups         string
	Allow          []string
	RequireMention bool
}

// Facts are what gate and table judge: one inbound event, and what the gateway knows about it.
type Facts struct {
	Channel string // configured name that the event came through
	Local   bool   // it came by the gateway itself, which vouches for who wrote: from a page, a terminal or a program
	In      channels.Inbound
	Person  workspace.Person // behind the sender's id; the zero Person: there is no record of them
	// Addressed says that the message which this event answers, reacts to, edits or deletes is ours, or was
	// addressed to us: what the gateway can look up and the adapter cannot.
	Addressed  bool
	Was        channels.PeerID   // the conversation's first id, when the network gave it a new one since
	Activation string            // of the room, by /activation; empty: as configured
	Agent      workspace.AgentID // chosen for this chat by /agent switch; empty: none
	Session    string            // name chosen for this chat by /session switch; empty: none
	Alone      bool              // one owner is the only person: dm_scope main may hold
}

// Outcome is what the gate wants to be done with an event.
type Outcome string

const (
	Admit   Outcome = "admit"   // it may act, with the rights of Verdict.Role
	Refuse  Outcome = "refuse"  // recorded without its text, answered with silence
	Pair    Outcome = "pair"    // as Refuse, but the sender may be sent a pairing code
	Context Outcome = "context" // said in an allowed room, not to us: kept for a later turn to quote
	Note    Outcome = "note"    // a fact told by the network, not an act of a person
	Ignore  Outcome = "ignore"  // not stored: our own message, another bot, a reaction that is not about us
)

// Verdict is the gate's answer. Decision.Allow is true for Admit and Note only.
type Verdict struct {
	Outcome  Outcome
	Role     workspace.Role // of Admit: whose rights hold for the whole turn
	Decision workspace.Decision
}

// String is the line that /why and `route explain` print.
func (v Verdict) String() string {
	var b strings.Builder
	b.WriteString(string(v.Outcome))
	if v.Role != workspace.Nobody {
		b.WriteString(" as " + string(v.Role))
	}
	b.WriteString(" by " + v.Decision.Rule)
	if v.Decision.Reason != "" {
		b.WriteString(": " + v.Decision.Reason)
	}
	if len(v.Decision.Gates) > 0 {
		b.WriteString(" (passed: " + strings.Join(v.Decision.Gates, ", ") + ")")
	}
	return b.String()
}

// Gate says whether the sender may speak here. Messages, commands, edits, reactions and buttons are judged
// alike: the kind of an event never opens a door that a message would find shut.
func Gate(a Access, f Facts) Verdict {
	in := &f.In
	switch in.Kind {
	case channels.KindUnparsed:
		return Verdict{Outcome: Note, Decision: workspace.Decision{Allow: true, Rule: "unparsed"}}
	case channels.KindMessage, channels.KindEdit, channels.KindReaction, channels.KindButton:
	case channels.KindDelete, channels.KindMoved:
		return gateRoomEvent(a, &f)
	default:
		return refuse("kind", "this kind of event is not known")
	}
	if f.Local {
		return gateLocal(f)
	}
	switch {
	case own(in):
		return ignore("own", "written by this account itself")
	case in.From.User == "":
		return refuse("sender", "the network did not say who wrote")
	case in.From.Bot && !a.allowsSender(in.From):
		return ignore("bot", "a bot whose id is not in allow")
	case f.Person.ID != "" && !f.Person.Role.AtLeast(workspace.Guest):
		return refuse("person", "this person has no role here")
	}
	switch in.To.Kind {
	case channels.DM:
		return gateDM(a, f)
	case channels.Group, channels.Room:
		return gateGroup(a, f)
	}
	return refuse("peer", "this kind of conversation is not known")
}

// gateLocal judges who came by a sign-in or the gateway's token. The gateway vouches for the person, whose id stands for
// both the account and the sender.
func gateLocal(f Facts) Verdict {
	in := &f.In
	if in.From.User == "" || string(in.From.User) != string(in.To.Account) || string(in.From.User) != string(f.Person.ID) || !f.Person.Known() {
		return refuse("local", "nobody who may write is signed in under this id")
	}
	return admit(f, "local:"+string(in.To.Network), "signed in")
}

func gateDM(a Access, f Facts) Verdict {
	switch a.DM {
	case Disabled:
		return refuse("dm:disabled", "direct messages are off", "sender")
	case Pairing, Allowlist, Open, "":
	default:
		return refuse("dm:policy", "the dm policy is not known", "sender")
	}
	switch {
	case f.Person.Known(): // not so a guest who was once let into a group, or came while the door was open (T09)
		return admit(f, "dm:known", "sender", "dm:known")
	case a.allowsSender(f.In.From):
		return admit(f, "dm:allow", "sender", "dm:allow")
	case a.DM == Open:
		return admit(f, "dm:open", "sender", "dm:open")
	case a.DM == Allowlist:
		return refuse("dm:allowlist", "the sender's id is not in allow", "sender")
	}
	v := refuse("dm:pairing", "the sender is not paired", "sender")
	if f.In.Kind == channels.KindMessage { // nobody asks to be let in by editing or reacting
		v.Outcome = Pair
	}
	return v
}

func gateGroup(a Access, f Facts) Verdict {
	rule, reason := a.room(&f)
	if reason != "" {
		return refuse(rule, reason, "sender")
	}
	how := mention(a, f)
	switch {
	case how != "":
		return admit(f, rule, "sender", rule, how)
	case f.In.Kind == channels.KindReaction:
		return ignore("mention", "a reaction to somebody else's message")
	}
	return Verdict{Outcome: Context, Decision: workspace.Decision{
		Rule: "mention", Reason: "not addressed to us, and a mention is required here", Gates: []string{"sender", rule}}}
}

// gateRoomEvent judges what the network says about a room: that a message is gone, that the room has a new id.
// Networks often do not say by whom, and nothing can be started with it.
func gateRoomEvent(a Access, f *Facts) Verdict {
	in := &f.In
	if !f.Local && own(in) {
		return ignore("own", "done by this account itself")
	}
	if in.To.Kind == channels.DM {
		if a.DM == Disabled {
			return refuse("dm:disabled", "direct messages are off")
		}
	} else if rule, reason := a.room(f); reason != "" {
		return refuse(rule, reason)
	}
	return Verdict{Outcome: Note, Decision: workspace.Decision{Allow: true, Rule: "event:" + string(in.Kind)}}
}

// room judges a group or room. An empty reason means that everyone in it may speak.
func (a Access) room(f *Facts) (rule, reason string) {
	switch a.Groups {
	case Open:
		return "group:open", ""
	case Disabled:
		return "group:disabled", "groups are off"
	case Allowlist, "":
		if peer := f.In.To.Peer; peer != "" && slices.Contains(a.Allow, string(peer)) || f.Was != "" && slices.Contains(a.Allow, string(f.Was)) {
			return "group:allow", ""
		}
		return "group:allowlist", "the room's id is not in allow"
	}
	return "group:policy", "the groups policy is not known"
}

// mention says what makes the event addressed to us, or is empty.
func mention(a Access, f Facts) string {
	in := &f.In
	switch {
	case in.Command:
		return "mention:command"
	case in.Kind == channels.KindButton: // only our messages carry our buttons
		return "mention:button"
	case in.Mentioned:
		return "mention:name"
	case f.Addressed, in.Quote != nil && in.Quote.Own:
		return "mention:reply"
	case f.Activation == ActivateAlways, f.Activation != ActivateMention && !a.RequireMention:
		return "mention:always"
	}
	return ""
}

// allowsSender says whether one of the sender's ids is listed. WhatsApp people have two.
func (a Access) allowsSender(s channels.Sender) bool {
	if s.User != "" && slices.Contains(a.Allow, string(s.User)) {
		return true
	}
	return slices.ContainsFunc(s.Alt, func(id channels.UserID) bool {
		return id != "" && slices.Contains(a.Allow, string(id))
	})
}

func own(in *channels.Inbound) bool {
	account := channels.UserID(in.To.Account)
	return account != "" && (in.From.User == account || slices.Contains(in.From.Alt, account))
}

func admit(f Facts, rule string, gates ...string) Verdict {
	role := f.Person.Role
	if f.Person.ID == "" {
		role = workspace.Guest
	}
	return Verdict{Outcome: Admit, Role: role, Decision: workspace.Decision{Allow: true, Rule: rule, Gates: gates}}
}

func refuse(rule, reason string, gates ...string) Verdict {
	return Verdict{Outcome: Refuse, Decision: workspace.Decision{Rule: rule, Reason: reason, Gates: gates}}
}

func ignore(rule, reason string) Verdict {
	return Verdict{Outcome: Ignore, Decision: workspace.Decision{Rule: rule, Reason: reason}}
}
