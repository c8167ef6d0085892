// Package config is the verbs that change the configuration: its file as text, a look at a text, another text, and places of it.
// None is ever a tool: what they reach is the gateway itself (E68).
package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/channels"
	"parley/configs"
	"parley/configs/edit"
	"parley/configs/guard"
	"parley/configs/source"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/setup"
	"parley/workspace"
)

// Config does the verbs of the configuration's file. All fields are needed.
type Config struct {
	*control.Kernel
	Setup *setup.Setup
}

// Problem is one thing that is wrong with a text.
type Problem struct {
	Line    int    `json:"line"`   // from 1; 0: of no line
	Column  int    `json:"column"` // from 1; 0: not known
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func problemsOf(list []configs.Problem) []Problem {
	out := make([]Problem, 0, len(list))
	for _, p := range list {
		message := p.Text
		if p.Env != "" {
			message += " (environment variable " + p.Env + ")"
		}
		out = append(out, Problem{Line: p.Line, Key: p.Path, Message: message})
	}
	return out
}

// File is the configuration's file.
type File struct {
	Path       string    `json:"path"`
	Exists     bool      `json:"exists"`
	Text       string    `json:"text"`       // with •••• in place of each credential that is written in it
	Revision   string    `json:"revision"`   // of the text; empty: there is no file
	Masked     []string  `json:"masked"`     // where such a mask stands
	Overridden []string  `json:"overridden"` // keys that the environment gives: they are not changed here
	Problems   []Problem `json:"problems"`   // why the file is not in force
}

var ShowFile = control.Verb[*Config, struct{}, File]{
	Name: "config.file", Help: "Show the configuration's file as text, with its credentials masked", Rights: rights.Owners,
	HTTP: "GET /v1/config/file", Group: "gateway",
	Do: func(_ context.Context, c *Config, _ control.Call, _ struct{}) (File, error) {
		v, err := c.Setup.Show()
		if err != nil {
			return File{}, err
		}
		f := File{Path: v.Path, Exists: v.Revision != "", Text: string(v.Text), Revision: v.Revision,
			Masked: append([]string{}, v.Masked...), Overridden: append([]string{}, v.Overridden...), Problems: problemsOf(v.Problems)}
		if v.Hidden != nil {
			f.Text = ""
			f.Problems = append(f.Problems, Problem{Message: "the file cannot be shown without its credentials: " + v.Hidden.Error()})
		}
		return f, nil
	},
}

// Text is a text that is not the file yet.
type Text struct {
	Text string `json:"text,omitempty" help:"the *text*, as config.file shows it and with the changes"`
}

// Checked is what a text would do.
type Checked struct {
	OK       bool      `json:"ok"`
	Problems []Problem `json:"problems"`
	Changed  []string  `json:"changed"` // keys
	Guarded  []string  `json:"guarded"` // those that want the token or a fresh sign-in
	Restart  []string  `json:"restart"` // those that act at the next start only
}

var Check = control.Verb[*Config, Text, Checked]{
	Name: "config.check", Help: "Say what is wrong with a configuration, and what it would change", Rights: rights.Owners,
	HTTP: "POST /v1/config/check", Group: "gateway", Unkept: true,
	Do: func(_ context.Context, c *Config, call control.Call, in Text) (Checked, error) {
		v, err := c.Setup.Check([]byte(in.Text), func(keys []string) error { return control.RefuseGuarded(call, keys) })
		if err != nil {
			return Checked{}, refused(err)
		}
		return Checked{OK: len(v.Problems) == 0, Problems: problemsOf(v.Problems), Changed: append([]string{}, v.Changed...),
			Guarded: append([]string{}, v.Guarded...), Restart: append([]string{}, v.Restart...)}, nil
	},
}

// Applied is what became of a change.
type Applied struct {
	Revision string   `json:"revision"` // of the file now
	Changed  []string `json:"changed"`  // keys
	Restart  []string `json:"restart"`  // those that act at the next start only
	Notes    []string `json:"notes"`    // what people should know, in sentences
}

func applied(a setup.Applied) Applied {
	return Applied{a.Revision, append([]string{}, a.Changed...), append([]string{}, a.Restart...), append([]string{}, a.Notes...)}
}

// WriteIn is another text for the file.
type WriteIn struct {
	Text     string `json:"text,omitempty" help:"the *text*, as config.file shows it and with the changes"`
	Revision string `json:"revision,omitempty" help:"of the text that it was made of; left out: there was no file"`
}

var Write = control.Verb[*Config, WriteIn, Applied]{
	Name: "config.write", Help: "Replace the configuration's text and put it in force", Rights: rights.Owners,
	HTTP: "PUT /v1/config/file", Group: "gateway",
	Do: func(ctx context.Context, c *Config, call control.Call, in WriteIn) (Applied, error) {
		a, err := c.Setup.Write(ctx, c.asker(call), in.Revision, []byte(in.Text))
		return applied(a), refused(err)
	},
}

// Set is one place of the configuration with its new value.
type Set struct {
	Path   string          `json:"path"`            // models[claude].base_url; an item as a whole: models[claude]
	Value  json.RawMessage `json:"value,omitempty"` // as it is to be written
	Remove bool            `json:"remove,omitempty"`
}

// Secret is a credential for a place.
type Secret struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// mostChanges are made at once: each is held against the whole text.
const mostChanges = 100

// ChangeIn is what is to be changed.
type ChangeIn struct {
	Revision string   `json:"revision,omitempty" help:"of the text that it is meant for; left out: whatever it is"`
	Changes  []Set    `json:"changes,omitempty" help:"places with their values, made one after the other"`
	Secrets  []Secret `json:"secrets,omitempty" help:"credentials, each of which goes into a file of its own"`
}

var Change = control.Verb[*Config, ChangeIn, Applied]{
	Name: "config.change", Help: "Change keys of the configuration, leaving the rest of its text, and put them in force",
	Rights: rights.Owners, HTTP: "POST /v1/config/change", Group: "gateway",
	Do: func(ctx context.Context, c *Config, call control.Call, in ChangeIn) (Applied, error) {
		if len(in.Changes)+len(in.Secrets) > mostChanges {
			return Applied{}, workspace.Say(workspace.ErrInvalid,
				"These are more than %d changes at once: write the file as a whole.", mostChanges)
		}
		e := setup.Edit{Base: in.Revision}
		for _, one := range in.Changes {
			set := setup.Set{Path: one.Path}
			switch {
			case one.Remove == (one.Value != nil):
				return Applied{}, workspace.Say(workspace.ErrInvalid, "%s has either a value or remove: true.", one.Path)
			case one.Value != nil:
				v, err := edit.Value([]byte(one.Value))
				if err != nil {
					return Applied{}, workspace.Say(workspace.ErrInvalid, "The value of %s cannot be written.", one.Path)
				}
				set.Value = v
			}
			e.Sets = append(e.Sets, set)
		}
		for _, one := range in.Secrets {
			e.Secrets = append(e.Secrets, setup.Secret(one))
		}
		a, err := c.Setup.Change(ctx, c.asker(call), e)
		return applied(a), refused(err)
	},
}

// asker is the caller with their rights, and their rows of the audit log.
func (c *Config) asker(call control.Call) setup.Asker {
	return setup.Asker{
		May: func(keys []string) error { return control.RefuseGuarded(call, keys) },
		Row: func(kind string, what map[string]any) workspace.AuditRow { return c.AuditRow(call, kind, what) },
	}
}

// refused gives what a change fails with its code and its sentence.
func refused(err error) error {
	say := func(code string, kind error, format string, args ...any) error {
		return &control.Refusal{Code: code, Err: workspace.Say(errors.Join(kind, err), format, args...)}
	}
	invalid := func(list []Problem, why string) error {
		return &control.Refusal{Code: "config_invalid", Problems: list,
			Err: workspace.Say(errors.Join(workspace.ErrInvalid, err), "The configuration is not valid, and stays as it was: %s.", why)}
	}
	var wrong *configs.Error
	var kept *guard.ErrKept
	var undone *setup.Undone
	var mask *edit.ErrMask
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		lines := make([]string, 0, len(wrong.Problems))
		for _, p := range wrong.Problems {
			lines = append(lines, p.Error())
		}
		return invalid(problemsOf(wrong.Problems), strings.Join(lines, "; "))
	case errors.As(err, &mask):
		return invalid([]Problem{{Line: mask.Line, Message: mask.Error()}}, mask.Error())
	case errors.Is(err, source.ErrEmpty):
		return invalid([]Problem{{Line: 1, Message: "it is empty"}}, "it is empty")
	case errors.Is(err, source.ErrChanged):
		return say("config_changed", workspace.ErrConflict, "The configuration file was changed meanwhile. Load it again.")
	case errors.As(err, &kept):
		return say("secret_kept", workspace.ErrConflict, "%s is kept for another address. Give it again for the new one.", kept.Path)
	case errors.As(err, &undone):
		return say("change_undone", workspace.ErrConflict, "%s was well before, and fails now: %s. The change is undone.",
			undone.Part, strings.TrimSuffix(undone.Why, "."))
	case errors.Is(err, setup.ErrEnvironment), errors.Is(err, setup.ErrSecret), errors.Is(err, edit.ErrByHand):
		return say("config_refused", workspace.ErrInvalid, "The configuration stays as it was: %s.", err)
	case errors.Is(err, edit.ErrPath):
		return say("config_refused", workspace.ErrInvalid, "%s.", err)
	case errors.Is(err, source.ErrUnwritable):
		return say("config_unwritable", workspace.ErrInvalid, "%s. Change it where Parley runs, then run `parley config reload`.",
			sentence(err))
	}
	if _, said := workspace.Sentence(err); said || errors.Is(err, channels.ErrUnwritable) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("change the configuration: %w", err)
	}
	return say("config_refused", workspace.ErrInvalid, "The configuration is not taken, and stays as it was: %s.", err)
}

func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
