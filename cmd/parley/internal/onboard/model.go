// Which model answers.

package onboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agentloop/llm/provider"
	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/gateway/snapshot"
)

// lookWithin is how long a server on this machine may take to say that it is there.
const lookWithin = 2 * time.Second

// answering is a server on this machine that lists models.
type answering struct {
	provider.Provider
	models []provider.Model
}

// errAgain says that a person chose to begin the choice of a model again.
var errAgain = errors.New("choose again")

// chooseModel fills the model, by questions or flags.
func (o *onboard) chooseModel(ctx context.Context) error {
	local := o.localServers(ctx)
	if o.provider == "" {
		var err error
		if o.provider, err = o.askProvider(local); err != nil {
			return err
		}
	}
	switch o.provider {
	case "offline":
		o.model = configs.Model{Name: "offline", API: "offline", Model: "offline"}
		return nil
	case "compatible":
		o.provider = provider.Other
	case "local":
		if len(local) == 0 {
			return fmt.Errorf("no local model server answers; start Ollama, LM Studio, llama.cpp or vLLM, or name one with --provider " +
				"compatible --base-url")
		}
		o.provider = local[0].ID
	}
	p, ok := provider.Find(o.provider)
	if !ok {
		return cli.Misuse(fmt.Errorf("there is no provider %q; there are %s, local, offline", o.provider, strings.Join(ids(), ", ")))
	}
	return o.useProvider(ctx, p)
}

// ids are the providers as flags have them.
func ids() (list []string) {
	for _, p := range provider.All() {
		list = append(list, p.ID)
	}
	return list
}

// localServers are those on this machine that answer. Keys in the environment do not matter here.
func (o *onboard) localServers(ctx context.Context) (found []answering) {
	if o.provider != "" && o.provider != "local" {
		return nil
	}
	done := o.Progress("looking for local model servers")
	defer done()
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	list := slices.DeleteFunc(provider.All(), func(p provider.Provider) bool { return !p.Local })
	answers := make([]snapshot.Tried, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { answers[i], _ = o.try.Model(ctx, snapshot.Ask{Provider: p.ID}) }) // what does not answer is not offered
	}
	wg.Wait()
	for i, p := range list {
		if answers[i].Trouble == nil && len(answers[i].Models) > 0 {
			found = append(found, answering{p, answers[i].Models})
		}
	}
	return found
}

func (o *onboard) askProvider(local []answering) (string, error) {
	var list []cli.Choice
	best := ""
	for _, l := range local {
		list = append(list, cli.Choice{ID: l.ID, Label: fmt.Sprintf("%s on this machine: %s", l.Name, l.Suggest(l.models))})
	}
	for _, p := range provider.All() {
		if slices.ContainsFunc(local, func(l answering) bool { return l.ID == p.ID }) {
			continue
		}
		label := p.Name
		if p.Env != "" && os.Getenv(p.Env) != "" {
			label += "; " + p.Env + " is set"
			if best == "" {
				best = p.ID
			}
		} else if p.Local {
			label += "; does not answer now"
		}
		list = append(list, cli.Choice{ID: p.ID, Label: label})
	}
	if best == "" {
		best = list[0].ID
	}
	none := "none for now: a built-in responder, to look around"
	if o.had != nil && len(o.had.conf.Models) > 0 {
		none, best = "keep the models that are there", "offline"
	}
	list = append(list, cli.Choice{ID: "offline", Label: none})
	return o.ask.One("\nWhich model should answer?", list, best)
}

// chooseAgent asks whether the default agent answers with the model that is added.
func (o *onboard) chooseAgent() (err error) {
	o.switches = true
	if o.had == nil || o.ask == nil || o.model.API == "offline" {
		return nil
	}
	for _, a := range o.had.conf.Agents {
		if a.Default {
			o.switches, err = o.ask.Yes(fmt.Sprintf("Shall agent %s answer with %s from now on?", a.ID, o.model.Name), true)
		}
	}
	return err
}

// useProvider asks for address, key and model, as far as they are not known.
func (o *onboard) useProvider(ctx context.Context, p provider.Provider) error {
	if o.ask != nil && p.Note != "" {
		o.say("", p.Note)
	}
	base, err := o.address(p)
	if err != nil {
		return err
	}
	key, err := o.key(p, base)
	if err != nil {
		return err
	}
	done := o.Progress("asking which models there are")
	got, err := o.try.Model(ctx, snapshot.Ask{Provider: p.ID, BaseURL: base, Key: key})
	done()
	if err != nil {
		return err
	}
	if got.Trouble == nil {
		base = got.Target.BaseURL
	} else if o.ask != nil && got.Trouble.Code != provider.NotFound { // not every server has a list
		again, err := o.chooseAgain(got.Trouble)
		if err == nil && again {
			err = errAgain
		}
		if err != nil {
			return err
		}
	}
	m := configs.Model{Name: p.Model, API: p.API, BaseURL: base, ContextWindow: p.Window, MaxOutputTokens: usualOutput}
	if m.Model, err = o.pick(got); err != nil {
		return err
	}
	if i := slices.IndexFunc(got.Models, func(one provider.Model) bool { return one.ID == m.Model }); i >= 0 && got.Models[i].Window > 0 {
		m.ContextWindow = got.Models[i].Window
	}
	if m.MaxOutputTokens >= m.ContextWindow {
		m.MaxOutputTokens = m.ContextWindow / 4
	}
	if key == "" && !isLocal(base) {
		key = "none" // the server wants no key, but a model that is not on this machine has one
	}
	m.APIKey = configs.Secret(key)
	o.model = m
	return nil
}

func isLocal(base string) bool {
	u, err := url.Parse(base)
	return err == nil && configs.Loopback(u.Hostname())
}

// address is the provider's, unless there is none or another is named.
func (o *onboard) address(p provider.Provider) (string, error) {
	if p.BaseURL != "" && o.baseURL == "" {
		return p.BaseURL, nil
	}
	for {
		base := o.baseURL
		if base == "" {
			if o.ask == nil {
				return "", cli.Misuse(fmt.Errorf("--provider %s needs --base-url, such as %s", p.ID, p.Example))
			}
			var err error
			if base, err = o.ask.Text("Address, such as "+p.Example, ""); err != nil {
				return "", err
			}
		}
		u, err := url.Parse(base)
		if err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https") {
			return provider.Clean(base), nil
		}
		if o.ask == nil || o.baseURL != "" {
			return "", cli.Misuse(fmt.Errorf("%q is not a http or https address", base))
		}
		fmt.Fprintf(o.Out, "That is not a http or https address, such as %s.\n", p.Example)
	}
}

// key is from the file, the environment or the person.
func (o *onboard) key(p provider.Provider, base string) (string, error) {
	if o.keyFile != "" {
		return o.fromFile(o.keyFile)
	}
	env := p.Env
	if p.ID == provider.Other {
		env = "OPENAI_API_KEY"
	}
	set := ""
	if env != "" {
		set = strings.TrimSpace(os.Getenv(env))
	}
	if o.ask == nil {
		if set == "" && !isLocal(base) {
			return "", cli.Misuse(fmt.Errorf("the key is missing: --key-file FILE, or %s", env))
		}
		return set, nil
	}
	if p.Local && isLocal(base) {
		return "", nil
	}
	if set != "" {
		use, err := o.ask.Yes(env+" is set. Keep a copy of it for the gateway, in a file that only you can read?", true)
		if err != nil || use {
			return set, err
		}
	}
	question := "Key"
	if p.NeedsKey {
		o.say("", "Keys are made at "+p.KeyURL+" ("+p.KeyHint+").")
	} else {
		question = "Key, or Enter for none"
	}
	for {
		key, err := o.ask.Secret(question)
		if err != nil || key != "" || !p.NeedsKey {
			return key, err
		}
	}
}

func (o *onboard) fromFile(name string) (string, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(o.In, 64<<10))
	} else {
		data, err = os.ReadFile(name)
	}
	text := strings.TrimSpace(string(data))
	if err == nil && text == "" {
		err = fmt.Errorf("%s is empty", name)
	}
	return text, err
}

// listedMost is how many models are shown to choose from.
const listedMost = 12

// pick chooses among the models that a server lists.
func (o *onboard) pick(got snapshot.Tried) (string, error) {
	standard := got.Suggested
	if o.modelName != "" {
		return o.modelName, nil
	}
	if prefer := got.Target.Provider.Prefer; standard == "" && len(prefer) > 0 {
		standard = prefer[0]
	}
	if o.ask == nil {
		if standard == "" {
			if got.Trouble != nil {
				return "", errors.New(got.Trouble.Sentence)
			}
			return "", cli.Misuse(errors.New("the server lists no models: name one with --model"))
		}
		return standard, nil
	}
	if n := len(got.Models); n > 1 {
		var names []string
		for _, m := range got.Models[:min(n, listedMost)] {
			names = append(names, m.ID)
		}
		shown := strings.Join(names, ", ")
		if n > listedMost {
			shown += fmt.Sprintf(" and %d more", n-listedMost)
		}
		o.say("", "It lists "+cli.Visible(shown))
	}
	for {
		name, err := o.ask.Text("Model", standard)
		if err != nil || name != "" {
			return name, err
		}
	}
}
