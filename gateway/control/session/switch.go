package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Current tells which session the chat writes into.
var Current = control.Verb[*Sessions, struct{}, Item]{
	Name: "session.current", Help: "Say which session the chat writes into",
	Rights: rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own},
	Chat:   "session current",
	Do: func(_ context.Context, c *Sessions, call control.Call, _ struct{}) (Item, error) {
		ses, err := c.Store.SessionByKey(call.Session)
		if errors.Is(err, workspace.ErrNotFound) {
			return Item{}, workspace.Say(err, "Nothing was said here yet.")
		}
		if err != nil {
			return Item{}, err
		}
		it, err := c.itemOf(call, ses)
		if err != nil {
			return it, err
		}
		return it, c.Answer(call, it)
	},
	Say: func(it Item) string {
		s := fmt.Sprintf("**%s**", it.Name)
		if it.State != "idle" {
			s += ", " + it.state()
		}
		return s + fmt.Sprintf("\n- key `%s`\n- %s", it.Key, it.Usage.Text())
	},
}

// Switched is the session that a chat writes into from now on.
type Switched struct {
	Item
	Made bool // just now
	Left bool // nothing was switched: a chat without a room names its session with each message
}

func (v Switched) say() string {
	switch {
	case v.Left:
		const text = "Session **%s** is made. Choose it in WebChat's list, or with `parley chat --session`: its key is `%s`."
		return fmt.Sprintf(text, v.Name, v.Key)
	case v.Made:
		return fmt.Sprintf("This chat now writes into the new session **%s**. /session switch main leads back.", v.Name)
	case v.Name == "":
		return "This chat writes into its first session again."
	}
	text := fmt.Sprintf("This chat now writes into **%s** (`%s`).", v.Name, v.Key)
	if v.Preview != "" {
		text += "\nLast there: " + v.Preview
	}
	return text
}

// mayMove is what leading a chat to a session needs.
var mayMove = rights.Row{Owner: rights.Yes, Member: rights.OwnDirect, Guest: rights.OwnDirect}

// NewIn names a session to be made beside the chat's first.
type NewIn struct {
	Name string `json:"name" help:"its name"`
}

// New makes a session of this name beside the chat's first, and switches the chat to it. A chat without a
// room only has it made.
var New = control.Verb[*Sessions, NewIn, Switched]{
	Name: "session.new", Help: "Make a session beside the chat's first and lead the chat to it", Rights: mayMove,
	Chat: "session new <name>", Order: spec.BeforeRouting, Say: Switched.say,
	Do: func(_ context.Context, c *Sessions, call control.Call, in NewIn) (Switched, error) {
		name, err := title(in.Name)
		if err != nil {
			return Switched{}, err
		}
		if call.FromRoom() {
			return c.beside(call, name)
		}
		ses, err := c.create(call, CreateIn{Agent: call.Session.Agent, Name: name})
		if err != nil {
			return Switched{}, err
		}
		it, err := c.itemOf(call, ses)
		if err != nil {
			return Switched{}, err
		}
		v := Switched{Item: it, Made: true, Left: true}
		return v, c.Answer(call, v)
	},
}

// beside makes a session beside the chat's first and switches the chat to it.
func (c *Sessions) beside(call control.Call, name string) (Switched, error) {
	key := call.HomeKey()
	key.Name = name
	if strings.EqualFold(name, "main") {
		return Switched{}, workspace.Say(workspace.ErrInvalid, "“main” is this chat's first session: /session switch main.")
	}
	if ses, err := c.Store.SessionByKey(key); err == nil && !ses.Hidden {
		return Switched{}, workspace.Say(workspace.ErrConflict, "There is a session %q here already: /session switch %s.",
			name, quoted(name))
	} else if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return Switched{}, err
	}
	v := Switched{Made: true}
	v.Key, v.Name, v.Given, v.Agent = key.String(), name, name, string(key.Agent)
	text := key.String()
	_, err := c.Commit(call, func(store.Did) any { return v },
		store.Create{Key: key, Name: name}, store.SetPlace{Room: call.Room, SessionKey: &text})
	if err == nil {
		c.Moved()
	}
	return v, err
}

func quoted(s string) string {
	if strings.ContainsAny(s, " \t\"'") {
		return `"` + strings.ReplaceAll(s, `"`, "") + `"`
	}
	return s
}

// SwitchIn names the session that a chat is led to.
type SwitchIn struct {
	To string `json:"to" chat:"name|key|main" help:"its name, title or key; main is the chat's first"`
}

// Switch leads the chat to another session of its agent: by name, by title, by key, or "main" for its first.
// Which one it may be is rights.Switchable's to say.
var Switch = control.Verb[*Sessions, SwitchIn, Switched]{
	Name: "session.switch", Help: "Lead the chat to another session of its agent", Rights: mayMove,
	Chat: "session switch <name|key|main>", Order: spec.BeforeRouting, Say: Switched.say,
	Do: func(_ context.Context, c *Sessions, call control.Call, in SwitchIn) (Switched, error) {
		if !call.FromRoom() {
			return Switched{}, workspace.Say(workspace.ErrInvalid,
				"Here each message names its session: choose one in the list, or with parley chat --session NAME.")
		}
		home := call.HomeKey()
		key, err := c.target(call, home, strings.TrimSpace(in.To))
		if err != nil {
			return Switched{}, err
		}
		text := ""
		if key != home {
			text = key.String()
		}
		v := Switched{}
		v.Key, v.Name, v.Agent = key.String(), key.Name, string(key.Agent)
		if ses, err := c.Store.SessionByKey(key); err == nil {
			if v.Item, err = c.itemOf(call, ses); err != nil {
				return v, err
			}
		} else if !errors.Is(err, workspace.ErrNotFound) {
			return v, err
		}
		_, err = c.Commit(call, func(store.Did) any { return v }, store.SetPlace{Room: call.Room, SessionKey: &text})
		if err == nil {
			c.Moved()
		}
		return v, err
	},
}

// target is the session that is meant.
func (c *Sessions) target(call control.Call, home workspace.Key, to string) (workspace.Key, error) {
	missing := workspace.Say(workspace.ErrNotFound, "There is no session %q that this chat can be switched to. "+
		"/session list shows them; /session new makes one.", clip.Runes(to, 80))
	may := func(k workspace.Key) bool { return rights.Switchable(call.Actor, call.Kind, home, k) }
	if strings.EqualFold(to, "main") {
		return home, nil
	}
	if strings.HasPrefix(to, "agent:") {
		k, err := workspace.ParseKey(to)
		if err != nil || !may(k) {
			return k, missing
		}
		if _, err := c.Store.SessionByKey(k); errors.Is(err, workspace.ErrNotFound) {
			return k, missing
		} else if err != nil {
			return k, err
		}
		return k, nil
	}
	heads, err := c.Store.Heads()
	if err != nil {
		return home, err
	}
	var found []workspace.Key
	for _, h := range heads {
		if !may(h.Key) {
			continue
		}
		if rights.SameChat(h.Key, home) && strings.EqualFold(h.Key.Name, to) {
			return h.Key, nil
		}
		if strings.EqualFold(h.Name, to) || strings.EqualFold(control.LocalTitle(h.Key), to) && to != "" {
			found = append(found, h.Key)
		}
	}
	switch len(found) {
	case 0:
		return home, missing
	case 1:
		return found[0], nil
	}
	return home, workspace.Say(workspace.ErrConflict, "%d sessions are called %q. Name one by its key: /session list shows them.",
		len(found), clip.Runes(to, 80))
}
