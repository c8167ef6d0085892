package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/transport"
	"parley/gateway/turn"
	"parley/workspace"
)

// Activity is what a session does.
type Activity struct {
	State   string // turn.StateOf
	Running bool
	Waiting int
	Held    string // why the turn has not begun, or is suspended
	Asleep  bool   // it has begun, and is suspended
}

// Status of a session and of the gateway behind it.
type Status struct {
	Agent     control.Agent
	Session   string
	Title     string
	Gen       int
	Overrides workspace.Overrides
	Entries   int
	Activity
	Last     *workspace.Run
	Models   []llm.ModelHealth
	Channels []transport.View
	Health   string
	Reason   string
	Uptime   time.Duration
	Config   control.ConfigFile
	Queue    lane.Settings
	// Chain is the session's models in the order in which they are asked.
	Chain      []string
	Activation string // of the room; empty: as configured
	Switched   bool   // the chat was led to this session
	Compacted  bool   // its older part is a summary
	Usage      workspace.Usage
}

// SayStatus tells a chat how its session and the gateway are.
var SayStatus = control.Verb[*Conversations, struct{}, Status]{
	Name: "status", Help: "Show agent, model, settings, queue and health", Rights: mayLook, Chat: "status", Say: Status.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, _ struct{}) (Status, error) {
		st, err := c.status(call)
		if err != nil {
			return Status{}, err
		}
		return st, c.Answer(call, st)
	},
}

// status is how a session and its gateway are. Others than owners see no channels and no causes.
func (c *Conversations) status(call control.Call) (Status, error) {
	key := call.Session.String()
	v := c.Lanes.Lane(key)
	health, reason := c.Store.Health()
	st := Status{Session: key, Activity: Activity{turn.StateOf(v), v.Running, len(v.Waiting), v.Held, v.Asleep},
		Models: c.Snapshot().Models.Health(), Health: string(health),
		Uptime: c.Now().Sub(c.Process.Began).Round(time.Second), Queue: c.Lanes.Queue(key)}
	st.Agent, _ = c.Find.Agent(call.Session.Agent)
	if call.FromRoom() {
		place, err := c.Store.PlaceIn(call.Room)
		if err != nil {
			return Status{}, err
		}
		st.Activation, st.Switched = place.Activation, call.HomeKey() != call.Session
	}
	if call.Owner() {
		st.Channels, st.Reason, st.Config = c.Channels.Views(), reason, c.Process.ConfigFile()
	} else { // what a provider says of a failure may name keys and places
		for i := range st.Models {
			st.Models[i].LastError = ""
		}
	}
	ses, err := c.Store.SessionByKey(call.Session)
	if err == nil {
		st.Gen, st.Overrides, st.Compacted = ses.Gen, ses.Overrides, ses.Compacted > 0
		if st.Usage, err = c.Spent.Of(ses.ID); err != nil {
			return Status{}, err
		}
		if run, err := c.Store.LastRun(ses.ID); err == nil {
			st.Last = &run
		}
		if last, err := c.Store.LastEntries(ses.ID, 1); err == nil && len(last) > 0 {
			st.Entries = int(last[0].N)
		}
	} else if !errors.Is(err, workspace.ErrNotFound) {
		return Status{}, err
	}
	if st.Title, err = c.Find.Title(map[string]string{}, key); err != nil {
		return Status{}, err
	}
	st.Chain = c.choices(call, call.Session.Agent, st.Overrides).Chain
	return st, nil
}

func (v Activity) say() string {
	behind := workspace.Plural(v.Waiting, "message")
	switch {
	case v.Asleep && v.Waiting > 0:
		return fmt.Sprintf("a turn is suspended: %s; %s behind it", v.Held, behind)
	case v.Asleep:
		return "a turn is suspended: " + v.Held
	case v.Held != "":
		return "a turn waits: " + v.Held
	case v.Running && v.Waiting > 0:
		return fmt.Sprintf("a turn is running, %s behind it", behind)
	case v.Running:
		return "a turn is running"
	}
	return "idle"
}

func (v Status) say() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** in the session **%s**\n", v.Agent.Name, cmp.Or(v.Title, v.Session))
	fmt.Fprintf(&b, "- %s\n", v.Activity.say())
	chain := v.Chain
	if len(chain) == 0 {
		chain = v.Agent.Models
	}
	for i, name := range chain {
		state := "ok"
		for _, m := range v.Models {
			if m.Name == name {
				state = modelState(m)
			}
		}
		kind := "model"
		if i > 0 {
			kind = "fallback"
		}
		fmt.Fprintf(&b, "- %s `%s`: %s\n", kind, name, state)
	}
	fmt.Fprintf(&b, "- queue mode %s\n", v.Queue.Mode)
	if o := overrides(v.Overrides); o != "" {
		fmt.Fprintf(&b, "- changed for this session: %s\n", o)
	}
	if v.Activation != "" {
		fmt.Fprintf(&b, "- changed for this group: activation %s\n", v.Activation)
	}
	if v.Switched {
		b.WriteString("- this chat was switched here: /session switch main leads back\n")
	}
	if v.Compacted {
		b.WriteString("- the older part of the conversation is a summary\n")
	}
	if v.Usage.Calls > 0 {
		fmt.Fprintf(&b, "- this session: %s\n", control.UsageOf(v.Usage).Text())
	}
	if r := v.Last; r != nil && r.State.Live() && r.Trouble != nil {
		fmt.Fprintf(&b, "- its model fails: %s\n", llm.Problem(*r.Trouble))
	}
	if v.Last != nil {
		u := v.Last.Usage
		fmt.Fprintf(&b, "- last run %s: %s, %s\n", workspace.Short(v.Last.ID), control.Ending(string(v.Last.State), v.Last.Reason),
			control.UsageOf(u).Text())
	}
	for _, ch := range v.Channels {
		fmt.Fprintf(&b, "- channel %s (%s): %s", ch.Name, ch.Network, ch.State)
		if ch.State != channels.Ready && ch.Hint != "" {
			b.WriteString(". " + ch.Hint)
		}
		b.WriteByte('\n')
	}
	if c := v.Config; c.Problem != "" {
		fmt.Fprintf(&b, "- the configuration file has an error: %s. The former configuration is in force since %s\n", c.Problem,
			c.Since.UTC().Format("2006-01-02 15:04 UTC"))
	} else if len(c.Waits) > 0 {
		fmt.Fprintf(&b, "- changes that wait for a restart: %s\n", strings.Join(c.Waits, ", "))
	}
	fmt.Fprintf(&b, "- up for %s, store %s", v.Uptime.Round(time.Second), v.Health)
	if v.Reason != "" {
		b.WriteString(": " + v.Reason)
	}
	return b.String()
}

func modelState(m llm.ModelHealth) string {
	switch {
	case m.Offline:
		return "offline responder, no model"
	case m.Down && m.LastError == "":
		return "unavailable, retrying"
	case m.Down:
		return "unavailable (" + m.LastError + "), retrying"
	case m.LastError != "":
		return "last error: " + m.LastError
	}
	return "ok"
}

func overrides(o workspace.Overrides) string {
	var list []string
	most := ""
	if o.Cap > 0 {
		most = strconv.Itoa(o.Cap)
	}
	for _, x := range [][2]string{{"queue", o.Queue}, {"debounce", o.Debounce}, {"cap", most}, {"drop", o.Drop}, {"model", o.Model},
		{"think", o.Think}, {"verbose", o.Verbose}, {"reasoning", o.Reasoning}, {"usage", o.Usage}, {"send", o.Send}} {
		if x[1] != "" {
			list = append(list, x[0]+" "+x[1])
		}
	}
	return strings.Join(list, ", ")
}
