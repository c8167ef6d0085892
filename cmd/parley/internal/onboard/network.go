// Which networks are connected.

package onboard

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/pflag"

	"parley/channels"
	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/gateway/control/operator"
)

// joined is a network with its credentials, in the order of its fields.
type joined struct {
	operator.Kind
	values []string
}

// file is where a credential is kept, below secrets.
func (j joined) file(f channels.SetupField) string {
	if len(j.Fields) == 1 {
		return j.Name
	}
	return j.Name + "-" + f.Key
}

// flag is the name of the flag that names the file of a credential, such as slack-bot-token-file.
func flag(k operator.Kind, f channels.SetupField) string {
	return k.Type + "-" + strings.ReplaceAll(f.Key, "_", "-") + "-file"
}

func (o *onboard) networkFlags(f *pflag.FlagSet) {
	o.given, o.linked = map[string]*string{}, map[string]*bool{}
	for _, k := range o.kinds {
		for _, field := range k.Fields {
			o.given[flag(k, field)] = f.String(flag(k, field), "",
				"`file` that holds the "+strings.ToLower(field.Title[:1])+field.Title[1:]+" of "+k.Title)
		}
		if k.QR {
			o.linked[k.Type] = f.Bool(k.Type, false, "connect "+k.Title+"; its phone is linked later")
		}
	}
}

// chooseNetworks asks which networks to connect, and each of them about its account. A network keeps its number.
func (o *onboard) chooseNetworks(ctx context.Context) error {
	for _, k := range o.kinds {
		if err := o.flagged(ctx, k); err != nil {
			return err
		}
	}
	if o.ask == nil || len(o.joins) > 0 { // the flags said which
		return nil
	}
	for {
		choices, question := []cli.Choice{{ID: "none", Label: "none now"}}, "\nConnect a chat network?"
		if len(o.joins) > 0 {
			choices[0].Label, question = "no more", "\nAnother one?"
		}
		for _, k := range o.kinds {
			label := k.Title
			switch i := o.joinedAt(k.Type); {
			case i >= 0:
				label += " (connected as " + o.joins[i].Name + ")"
			case o.had.channel(k.Name, k.Type):
				label += " (there as " + k.Name + ": new credentials for it)"
			}
			choices = append(choices, cli.Choice{ID: k.Type, Label: label})
		}
		kind, err := o.ask.One(question, choices, "none")
		if err != nil || kind == "none" {
			return err
		}
		i := slices.IndexFunc(o.kinds, func(k operator.Kind) bool { return k.Type == kind })
		if err := o.connect(ctx, o.kinds[i]); err != nil {
			return err
		}
	}
}

func (o *onboard) joinedAt(kind string) int {
	return slices.IndexFunc(o.joins, func(j joined) bool { return j.Type == kind })
}

// take has a network connected, in place of what was given for it before.
func (o *onboard) take(j joined) {
	j.Name = o.had.free(j.Name, j.Type)
	if i := o.joinedAt(j.Type); i >= 0 {
		o.joins[i] = j
		return
	}
	o.joins = append(o.joins, j)
}

// flagged connects a network whose credentials came by flags.
func (o *onboard) flagged(ctx context.Context, k operator.Kind) error {
	j := joined{Kind: k}
	var flags []string
	for _, f := range k.Fields {
		flags = append(flags, flag(k, f))
		name := *o.given[flag(k, f)]
		if name == "" {
			continue
		}
		value, err := o.fromFile(name)
		if err != nil {
			return err
		}
		j.values = append(j.values, value)
	}
	switch {
	case k.QR && !*o.linked[k.Type], !k.QR && len(j.values) == 0:
		return nil
	case len(j.values) < len(k.Fields):
		return cli.Misuse(fmt.Errorf("%s needs all of --%s", k.Title, strings.Join(flags, ", --")))
	}
	if err := o.tryNetwork(ctx, j); err != nil {
		return err
	}
	o.take(j)
	return nil
}

// connect says what to do at the network, and asks for what comes of it until the network takes it, or nothing is given.
func (o *onboard) connect(ctx context.Context, k operator.Kind) error {
	fmt.Fprintln(o.Out)
	for i, step := range k.Steps {
		o.say(fmt.Sprintf("%d. ", i+1), plain(step))
	}
	for _, l := range k.Links {
		fmt.Fprintln(o.Out, "   "+o.anchor(l))
	}
	if k.QR {
		ok, err := o.ask.Yes("Add "+k.Title+"?", true)
		if err == nil && ok {
			o.take(joined{Kind: k})
		}
		return err
	}
	fmt.Fprintln(o.Out, "Enter alone: not now.")
	for {
		j := joined{Kind: k}
		for _, f := range k.Fields {
			value, err := o.ask.Secret(f.Title + ", such as " + f.Placeholder)
			if err != nil || value == "" {
				return err
			}
			j.values = append(j.values, value)
		}
		err := o.tryNetwork(ctx, j)
		if err == nil {
			o.take(j)
			return nil
		}
		o.say("", cli.Visible(err.Error()))
		fmt.Fprintln(o.Out, "Try again, or press Enter to go on without.")
	}
}

var link, marks = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`), regexp.MustCompile(`\*+([^*]+)\*+`)

// plain is a step's Markdown as a terminal shows it: a link with its address, no marks.
func plain(step string) string {
	step = link.ReplaceAllStringFunc(step, func(s string) string {
		m := link.FindStringSubmatch(s)
		if strings.HasSuffix(m[2], m[1]) {
			return m[2]
		}
		return m[1] + " (" + m[2] + ")"
	})
	return cli.Hinted(marks.ReplaceAllString(step, "$1"))
}

// longLink is how long an address may be that is shown; Slack's, with a whole manifest in it, would fill the screen.
const longLink = 200

// anchor is a link of a network's: a longer one can be opened by its title, where the terminal can do that (OSC 8).
func (o *onboard) anchor(l channels.Link) string {
	if len(l.URL) <= longLink || !cli.Colourful(o.Out) {
		return l.Title + ": " + l.URL
	}
	return "\x1b]8;;" + l.URL + "\x1b\\" + cli.Paint(o.Out, cli.Cyan, l.Title) + "\x1b]8;;\x1b\\ (a link, if your terminal opens links)"
}

// say prints a text as wide as the terminal, behind a beginning.
func (o *onboard) say(begin, text string) {
	wide := cli.Columns(o.Out) - len(begin)
	fmt.Fprintln(o.Out, begin+strings.ReplaceAll(ansi.Wordwrap(text, wide, ""), "\n", "\n"+strings.Repeat(" ", len(begin))))
}

// tryNetwork asks the network about the account. Nothing is changed there.
func (o *onboard) tryNetwork(ctx context.Context, j joined) error {
	opt, err := o.LoadOptions()
	if err != nil {
		return err
	}
	opt.Path = o.file
	text := "channels: [{name: " + j.Name + ", type: " + j.Type
	for i, f := range j.Fields {
		text += ", " + f.Key + ": " + quoted(j.values[i])
	}
	c, err := configs.Parse([]byte(text+"}]"), opt)
	var wrong *configs.Error
	if errors.As(err, &wrong) {
		return errors.New(wrong.Problems[0].Text)
	}
	if err != nil || o.untested || j.QR {
		return err
	}
	done := o.Progress("asking " + j.Title)
	list := o.try.Channels(ctx, c)
	done()
	prefix := "channel " + j.Name + ": "
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
