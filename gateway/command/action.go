// The slash commands that are rendered from verbs.

package command

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/spec"
)

// action is one thing that a slash command does: a verb, after a plain word or none.
type action struct {
	name, shown string // the plain word, empty: none; all that may stand behind the command
	verb        control.Any
	spec        spec.Verb
	field       *spec.Field // that what follows is for; nil: nothing may follow, or it has a grammar of its own
	needed      bool
}

// actions are those of each slash command, in the order of the verbs.
var actions = sync.OnceValue(func() map[string][]action {
	list := map[string][]action{}
	for _, v := range all.Verbs() {
		s := v.Spec()
		for line := range strings.SplitSeq(s.Chat, ",") {
			name, shown, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name != "" {
				list[name] = append(list[name], actionOf(v, s, shown))
			}
		}
	}
	return list
})

func actionOf(v control.Any, s spec.Verb, shown string) action {
	a := action{shown: shown, verb: v, spec: s}
	words := strings.Fields(shown)
	if len(words) > 0 && !strings.ContainsAny(words[0][:1], "<[") {
		a.name, words = words[0], words[1:]
	}
	if len(words) == 0 {
		return a
	}
	last := words[len(words)-1]
	a.needed = last[0] == '<'
	i := slices.IndexFunc(s.Fields, func(f spec.Field) bool { return f.Chat == strings.Trim(last, "<>[]") })
	if len(s.Fields) == 1 {
		i = 0
	}
	if i >= 0 {
		a.field = &s.Fields[i]
	}
	return a
}

// bare says that nothing may follow it.
func (a action) bare() bool { return a.field == nil && !a.spec.Typed }

// read fills in, a pointer to the verb's In, by the words that follow. control.NotTaken: one is not what it takes.
func (a action) read(in any, words []string) error {
	if own, err := a.verb.Typed(in, words); own {
		return err
	}
	argument := strings.Join(words, "")
	switch {
	case a.bare() && argument != "", a.needed && argument == "":
		return control.NotTaken(argument)
	case a.bare(), argument == "" && !a.field.Needed:
		return nil
	case a.field.Choices != nil:
		word := strings.ToLower(argument)
		if !slices.Contains(a.field.Choices, word) {
			return control.NotTaken(argument)
		}
		words[0], argument = word, word
	}
	return a.field.Set(in, argument)
}

// rendered completes a row by the verbs that have a slash command of its name.
func rendered(c Command) Command {
	c.actions = actions()[c.Name]
	var shown []string
	for _, a := range c.actions {
		if a.shown != "" {
			shown = append(shown, a.shown)
		}
		if a.name != "" {
			c.Choices = append(c.Choices, a.name)
		}
	}
	if len(shown) == 1 && shown[0][0] == '[' {
		c.Args = shown[0]
	} else if len(shown) > 0 {
		for i, s := range shown {
			if in, ok := strings.CutPrefix(s, "["); ok {
				shown[i] = strings.TrimSuffix(in, "]")
			}
		}
		c.Args = "[" + strings.Join(shown, "|") + "]"
	}
	return c
}

// chosen is what a line means: an action, and the words that are left for it.
type chosen struct {
	action
	words []string
}

// choose finds the action that some words are for: the one of their first, else the first that takes them all. Without any it
// may be the command's first action.
func (c Command) choose(args []string) (chosen, error) {
	wrong := ""
	if len(args) > 0 {
		wrong = args[0]
		word := strings.ToLower(wrong)
		if i := slices.IndexFunc(c.actions, func(a action) bool { return a.name == word }); word != "" && i >= 0 {
			args[0] = word
			return c.try(c.actions[i], args[1:])
		}
	}
	fits := func(a action) bool { return a.name == "" && (len(args) == 0 || !a.bare()) }
	err := c.wrong(wrong)
	for _, a := range c.actions {
		if !fits(a) {
			continue
		}
		var got chosen
		if got, err = c.try(a, args); err == nil {
			return got, nil
		}
	}
	if len(args) == 0 && !slices.ContainsFunc(c.actions, fits) {
		return c.try(c.actions[0], nil)
	}
	return chosen{}, err
}

// try refuses words that are not an action's.
func (c Command) try(a action, words []string) (chosen, error) {
	err := a.read(reflect.New(a.spec.In).Interface(), words)
	var not control.NotTaken
	if errors.As(err, &not) {
		err = c.wrong(string(not))
	}
	return chosen{a, words}, err
}

// do does it.
func (a chosen) do(ctx context.Context, nouns *all.Nouns, call control.Call) error {
	call.Render = a.verb.Said
	_, err := a.verb.Run(ctx, nouns.List(), call, func(in any) error { return a.read(in, a.words) })
	return err
}
