// Adding to a configuration that is there: what somebody wrote stays, with its comments.

package onboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/configs/edit"
)

// existing is the configuration that is added to.
type existing struct {
	text   []byte
	conf   *configs.Config
	agents bool // it names agents: else there is the one that is always there
}

// meet decides what becomes of a configuration that is there: it is added to, replaced, or left alone.
func (o *onboard) meet() error {
	text, err := os.ReadFile(o.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || o.replace {
		return err
	}
	if o.ask == nil && !o.add {
		return cli.Misuse(fmt.Errorf("%s is there already; --add adds to it, --replace replaces it, and both keep a copy", o.file))
	}
	had, wrong := o.read(text)
	if o.ask != nil {
		if err := o.askExisting(wrong); err != nil || o.replace {
			return err
		}
	}
	o.had = had
	return wrong
}

// askExisting has the person choose, unless a flag did.
func (o *onboard) askExisting(wrong error) error {
	if o.add {
		return nil
	}
	list := []cli.Choice{{ID: "add", Label: "add to it: comments and order stay, and a copy is kept"},
		{ID: "replace", Label: "begin a new one: a copy of this one is kept"}, {ID: "leave", Label: "leave it as it is"}}
	question := o.file + " is there already."
	if wrong != nil {
		o.say("", cli.Visible("It does not load, so that nothing can be added to it: "+wrong.Error()))
		list = list[1:]
	}
	what, err := o.ask.One(question, list, map[bool]string{true: "leave", false: "add"}[wrong != nil])
	if err == nil && what == "leave" {
		err = cli.ErrAborted
	}
	o.replace = what == "replace"
	return err
}

func (o *onboard) read(text []byte) (*existing, error) {
	opt, err := o.LoadOptions()
	if err != nil {
		return nil, err
	}
	opt.Path = o.file
	conf, err := configs.Parse(text, opt)
	if err != nil {
		return nil, err
	}
	var keys struct{ Agents []yaml.Node }
	if err := yaml.Unmarshal(text, &keys); err != nil {
		return nil, err
	}
	return &existing{text, conf, len(keys.Agents) > 0}, nil
}

// owner says whether somebody is named as an owner.
func (h *existing) owner() bool {
	return h != nil && slices.ContainsFunc(h.conf.People, func(p configs.Person) bool { return p.Role == "owner" })
}

// channel is the one of that name and type.
func (h *existing) channel(name, kind string) bool {
	return h != nil && slices.ContainsFunc(h.conf.Channels, func(c configs.Channel) bool { return c.Name == name && c.Type == kind })
}

// free is a name that no channel of another type has.
func (h *existing) free(name, kind string) string {
	for i, try := 2, name; ; i++ {
		if h == nil || !slices.ContainsFunc(h.conf.Channels, func(c configs.Channel) bool { return c.Name == try && c.Type != kind }) {
			return try
		}
		try = fmt.Sprint(name, i)
	}
}

// changes are what the answers make of the text.
func (o *onboard) changes() (list []edit.Change, err error) {
	set := func(path string, value any) {
		var node *yaml.Node
		if value != nil && err == nil {
			node, err = edit.Value(value)
		}
		list = append(list, edit.Change{Path: path, Value: node})
	}
	if o.model.API != "offline" {
		o.changeModel(set)
	}
	if p := o.person; p.id != "" {
		set("people["+p.id+"]", ordered("id", p.id, "name", p.name, "role", "owner", "tz", p.zone))
	}
	for _, j := range o.joins {
		if o.had.channel(j.Name, j.Type) {
			for _, f := range j.Fields {
				set("channels["+j.Name+"]."+f.Key, "${file:secrets/"+j.file(f)+"}")
			}
			continue
		}
		item := []string{"name", j.Name, "type", j.Type}
		for _, f := range j.Fields {
			item = append(item, f.Key, "${file:secrets/"+j.file(f)+"}")
		}
		set("channels["+j.Name+"]", ordered(item...))
		set("channels["+j.Name+"].access", ordered("dm", "pairing"))
	}
	return list, err
}

// changeModel adds the model, or gives the one of its name what is new, and has the default agent answer with it.
func (o *onboard) changeModel(set func(path string, value any)) {
	m, at := o.model, "models["+o.model.Name+"]"
	if !slices.ContainsFunc(o.had.conf.Models, func(c configs.Model) bool { return c.Name == m.Name }) {
		set(at, ordered("name", m.Name))
	}
	set(at+".api", m.API)
	set(at+".base_url", literal(m.BaseURL))
	if m.APIKey != "" {
		set(at+".api_key", "${file:secrets/"+m.Name+"}")
	} else {
		set(at+".api_key", nil)
	}
	set(at+".model", literal(m.Model))
	set(at+".context_window", m.ContextWindow)
	if m.MaxOutputTokens != usualOutput {
		set(at+".max_output_tokens", m.MaxOutputTokens)
	}
	i := slices.IndexFunc(o.had.conf.Agents, func(a configs.Agent) bool { return a.Default })
	if i < 0 || !o.switches {
		return
	}
	agent := o.had.conf.Agents[i]
	if !o.had.agents {
		set("agents["+agent.ID+"]", ordered("id", agent.ID, "name", agent.Name))
		set("agents["+agent.ID+"].default", true)
	}
	set("agents["+agent.ID+"].model", m.Name)
}

// literal is a text in which nothing is expanded.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

// ordered is an object of texts in the order in which they stand.
func ordered(pairs ...string) []byte {
	var b bytes.Buffer
	for i := 0; i < len(pairs); i += 2 {
		key, _ := json.Marshal(pairs[i]) // a string always marshals
		value, _ := json.Marshal(pairs[i+1])
		fmt.Fprintf(&b, ", %s: %s", key, value)
	}
	return []byte("{" + strings.TrimPrefix(b.String(), ", ") + "}")
}

// added is the text with the answers in it. What cannot be added to is left alone, and told what it lacks.
func (o *onboard) added() (string, error) {
	list, err := o.changes()
	if err != nil {
		return "", err
	}
	text, err := edit.Apply(o.had.text, list...)
	if errors.Is(err, edit.ErrByHand) {
		return "", fmt.Errorf("%s is not changed (%w). Set by hand, as `parley help config set` says:\n%s", o.file, err, byHand(list))
	}
	return string(text), err
}

// byHand is what somebody changes in an editor.
func byHand(list []edit.Change) string {
	var b strings.Builder
	for _, c := range list {
		if c.Value == nil {
			continue
		}
		text, err := yaml.Marshal(c.Value)
		if err == nil {
			fmt.Fprintf(&b, "  %s: %s\n", c.Path, strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", "))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
