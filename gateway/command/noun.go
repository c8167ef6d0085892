// The slash commands that are rendered from verbs: /<noun> <action> <argument>.

package command

import (
	"context"
	"slices"
	"strings"
	"sync"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/session"
	"parley/gateway/spec"
)

// action is a verb as the second word of a slash command.
type action struct {
	name, shown string
	verb        control.Any
	spec        spec.Verb
	field       *spec.Field // that the rest of the line is for; nil: it takes none
	needed      bool
}

// actions are those of each noun, in the order of the verbs.
var actions = sync.OnceValue(func() map[string][]action {
	list := map[string][]action{}
	for _, v := range all.Verbs() {
		s := v.Spec()
		noun, shown, _ := strings.Cut(s.Chat, " ")
		if noun == "" {
			continue
		}
		name, argument, _ := strings.Cut(shown, " ")
		a := action{name: name, shown: shown, verb: v, spec: s, needed: strings.HasPrefix(argument, "<")}
		i := slices.IndexFunc(s.Fields, func(f spec.Field) bool { return f.Chat == strings.Trim(argument, "<>[]") })
		if i >= 0 {
			a.field = &s.Fields[i]
		}
		list[noun] = append(list[noun], a)
	}
	return list
})

// takes says whether an argument is one of the action.
func (a action) takes(argument string) bool {
	switch {
	case a.field == nil:
		return argument == ""
	case argument == "":
		return !a.needed
	case a.field.Choices != nil:
		return slices.Contains(a.field.Choices, strings.ToLower(argument))
	}
	return true
}

// fill sets what was said of it.
func (a action) fill(in any, argument string) error {
	if argument == "" {
		return nil
	}
	if a.field.Choices != nil {
		argument = strings.ToLower(argument)
	}
	return a.field.Set(in, argument)
}

// rendered completes the row of a noun by the verbs that have a slash command below it. Without an action it is the first.
func rendered(c Command) Command {
	list := actions()[c.Name]
	chosen := func(args []string) (action, string) {
		if len(args) == 0 {
			return list[0], ""
		}
		i := slices.IndexFunc(list, func(a action) bool { return a.name == args[0] })
		return list[max(i, 0)], strings.Join(args[1:], "") // Choices let no other word come here
	}
	var shown []string
	for _, a := range list {
		shown, c.Choices = append(shown, a.shown), append(c.Choices, a.name)
	}
	c.Args, c.Verb, c.MaxArgs, c.Text = "["+strings.Join(shown, "|")+"]", list[0].spec.Name, 2, true
	c.verb = func(args []string) string {
		a, _ := chosen(args)
		return a.spec.Name
	}
	c.order = func(args []string) Order {
		if a, _ := chosen(args); a.spec.Moves {
			return BeforeRouting
		}
		return Concurrent
	}
	c.check = func(args []string) error {
		if a, argument := chosen(args); !a.takes(argument) {
			return c.wrong(argument)
		}
		return nil
	}
	c.run = func(ctx context.Context, nouns *all.Nouns, call control.Call, args []string) error {
		a, argument := chosen(args)
		call.Render = a.verb.Said
		_, err := a.verb.Run(ctx, nouns.List(), call, func(in any) error { return a.fill(in, argument) })
		return err
	}
	return c
}

func export(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	call.Render = session.Export.Said
	_, err := session.Export.Call(ctx, c.Sessions, call, session.ExportIn{Format: first(args)})
	return err
}
