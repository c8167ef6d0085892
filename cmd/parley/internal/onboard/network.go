// Which networks are connected.

package onboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley/channels/all"
	"parley/cmd/parley/internal/cli"
	"parley/configs"
)

// network is one that onboard can connect.
type network struct {
	kind, name, title string
	first             string // what to do there before
	keys              []credential
	after             string // what to do once the gateway runs; empty: nothing
}

// credential is one that a network gives.
type credential struct{ key, label, flag string }

// joined is a network with its credentials, in the order of keys.
type joined struct {
	network
	values []string
}

// file is where a credential is kept, below secrets.
func (j joined) file(k credential) string {
	if len(j.keys) == 1 {
		return j.name
	}
	return j.name + "-" + k.key
}

// networks are those that this binary has.
func networks() []network {
	list := []network{
		{"telegram", "tg", "Telegram", "Ask @BotFather there for a bot: /newbot. It gives you a token.",
			[]credential{{"token", "Token", "telegram-token-file"}}, ""},
		{"slack", "slack", "Slack", "Print the manifest with `parley channel manifest slack`, make an app of it at " +
			"https://api.slack.com/apps and install it. Then make an app-level token with connections:write.",
			[]credential{{"bot_token", "Bot token (xoxb-…)", "slack-bot-token-file"},
				{"app_token", "App-level token (xapp-…)", "slack-app-token-file"}}, ""},
		{"discord", "dc", "Discord", "Make an application with a bot at https://discord.com/developers/applications, switch on the " +
			"Message Content Intent under Bot, and reset the token to see it.",
			[]credential{{"token", "Token", "discord-token-file"}}, ""},
		{"whatsapp", "wa", "WhatsApp", "", nil, "To link WhatsApp, beside the running gateway: parley channel login wa"},
	}
	have := map[string]bool{}
	for _, f := range all.Factories() {
		have[string(f.Network)] = true
	}
	return slices.DeleteFunc(list, func(n network) bool { return !have[n.kind] })
}

func (o *onboard) networkFlags(f *pflag.FlagSet) {
	o.given = map[string]*string{}
	for _, n := range networks() {
		for _, k := range n.keys {
			o.given[k.flag] = f.String(k.flag, "", "`file` that holds the "+strings.ToLower(k.label[:1])+k.label[1:]+" of "+n.title)
		}
		if len(n.keys) == 0 {
			f.BoolVar(&o.whatsapp, n.kind, false, "connect "+n.title+"; its phone is linked later")
		}
	}
}

// chooseNetworks asks which networks to connect, and each of them about its account.
func (o *onboard) chooseNetworks(ctx context.Context) error {
	rest := networks()
	for _, n := range slices.Clone(rest) {
		asked, err := o.flagged(ctx, n)
		if err != nil {
			return err
		}
		if asked {
			rest = slices.DeleteFunc(rest, func(r network) bool { return r.kind == n.kind })
		}
	}
	if o.ask == nil || len(o.joins) > 0 { // the flags said which
		return nil
	}
	for len(rest) > 0 {
		choices := []cli.Choice{{ID: "none", Label: "none now"}}
		for _, n := range rest {
			choices = append(choices, cli.Choice{ID: n.kind, Label: n.title})
		}
		question := "\nConnect a chat network?"
		if len(o.joins) > 0 {
			choices[0].Label, question = "no more", "\nAnother one?"
		}
		kind, err := o.ask.One(question, choices, "none")
		if err != nil || kind == "none" {
			return err
		}
		i := slices.IndexFunc(rest, func(n network) bool { return n.kind == kind })
		if err := o.connect(ctx, rest[i]); err != nil {
			return err
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return nil
}

// flagged connects a network whose credentials came by flags.
func (o *onboard) flagged(ctx context.Context, n network) (bool, error) {
	j := joined{network: n}
	for _, k := range n.keys {
		name := *o.given[k.flag]
		if name == "" {
			continue
		}
		value, err := o.fromFile(name)
		if err != nil {
			return false, err
		}
		j.values = append(j.values, value)
	}
	switch {
	case len(n.keys) == 0 && !o.whatsapp, len(n.keys) > 0 && len(j.values) == 0:
		return false, nil
	case len(j.values) < len(n.keys):
		return false, cli.Misuse(fmt.Errorf("%s needs all of --%s", n.title, strings.Join(flagsOf(n), ", --")))
	}
	if err := o.tryNetwork(ctx, j); err != nil {
		return false, err
	}
	o.joins = append(o.joins, j)
	return true, nil
}

func flagsOf(n network) (list []string) {
	for _, k := range n.keys {
		list = append(list, k.flag)
	}
	return list
}

// connect asks for a network's credentials until it takes them, or nothing is given.
func (o *onboard) connect(ctx context.Context, n network) error {
	if n.first != "" {
		fmt.Fprintln(o.Out, n.first+" Enter alone: not now.")
	}
	for {
		j := joined{network: n}
		for _, k := range n.keys {
			value, err := o.ask.Secret(k.label)
			if err != nil || value == "" {
				return err
			}
			j.values = append(j.values, value)
		}
		err := o.tryNetwork(ctx, j)
		if err == nil {
			o.joins = append(o.joins, j)
			return nil
		}
		fmt.Fprintf(o.Out, "%s\nTry again, or press Enter to go on without.\n", cli.Visible(err.Error()))
		if len(n.keys) == 0 {
			return nil
		}
	}
}

// tryNetwork asks the network about the account. Nothing is changed there.
func (o *onboard) tryNetwork(ctx context.Context, j joined) error {
	opt, err := o.LoadOptions()
	if err != nil {
		return err
	}
	opt.Path = o.file
	text := "channels: [{name: " + j.name + ", type: " + j.kind
	for i, k := range j.keys {
		text += ", " + k.key + ": " + quoted(j.values[i])
	}
	c, err := configs.Parse([]byte(text+"}]"), opt)
	var wrong *configs.Error
	if errors.As(err, &wrong) {
		return errors.New(wrong.Problems[0].Text)
	}
	if err != nil || o.untested || len(j.keys) == 0 {
		return err
	}
	done := o.Progress("asking " + j.title)
	list := o.try.Channels(ctx, c)
	done()
	prefix := "channel " + j.name + ": "
	for _, f := range list {
		if !f.OK && !strings.Contains(f.What, "webhook") { // which the gateway removes
			return fmt.Errorf("%s. %s", strings.TrimPrefix(f.What, prefix), f.Hint)
		}
	}
	if len(list) > 0 {
		fmt.Fprintf(o.Out, "%s %s\n", cli.Paint(o.Out, cli.Green, "ok"), cli.Visible(strings.TrimPrefix(list[0].What, prefix)))
	}
	return nil
}
