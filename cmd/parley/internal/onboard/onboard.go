// Package onboard leads from nothing to the first answer: a model that was tried, networks, the configuration, a chat.
package onboard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/agentloop/llm/provider"
	"parley/channels/all"
	"parley/cmd/parley/internal/chat"
	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/daemon"
	"parley/cmd/parley/internal/service"
	"parley/configs"
	"parley/gateway"
	"parley/gateway/client"
	"parley/gateway/control/operator"
	"parley/gateway/snapshot"
)

// flags are what the command line said.
type flags struct {
	provider, baseURL, modelName, keyFile string
	add, replace, untested, noChat        bool
	personName, personZone                string
	given                                 map[string]*string // files of credentials, by flag
	linked                                map[string]*bool   // networks that are linked by a code, by type
}

// onboard leads from nothing to the first answer.
type onboard struct {
	*cli.App
	ask *cli.Asker // nil: nobody can be asked, the flags say all
	try *gateway.SetupProbe

	flags
	kinds []operator.Kind // networks that there are
	file  string          // of the configuration
	had   *existing       // what is added to; nil: a new one is written
	// switches says that the default agent answers with the model from now on.
	switches bool
	model    configs.Model
	person   person
	joins    []joined // networks to be connected
}

func Command(a *cli.App) *cobra.Command {
	kinds, err := operator.Kinds(all.Factories())
	o := &onboard{App: a, kinds: kinds}
	c := &cobra.Command{Use: "onboard", Short: "Set up a model and a channel, try them, and begin to chat", Args: cobra.NoArgs,
		Long: "Ask for a model and its key, try it with one call, ask who you are, ask for chat networks if wanted, write the " +
			"configuration, start the gateway, as a service of your user if you want it, or have the running one read the file, and end " +
			"in a chat. Nothing is written before the last question. Without a terminal the flags say all; keys come from files or from " +
			"the provider's variable, such as OPENROUTER_API_KEY, never from the command line.",
		Example: "  parley onboard\n  parley onboard --provider anthropic --key-file key.txt\n  parley onboard --provider local"}
	f := c.Flags()
	f.StringVar(&o.provider, "provider", "", "`one` of "+strings.Join(ids(), ", ")+", local, offline")
	f.StringVar(&o.baseURL, "base-url", "", "`address` of a compatible service, with its /v1")
	f.StringVar(&o.modelName, "model", "", "the provider's `name` for the model")
	f.StringVar(&o.keyFile, "key-file", "", "`file` that holds the key; - is standard input")
	f.StringVar(&o.personName, "name", "", "your `name`: the configuration names you as its owner")
	f.StringVar(&o.personZone, "tz", "", "your time `zone`, such as Europe/Berlin; without it that of this machine")
	o.networkFlags(f)
	f.BoolVar(&o.add, "add", false, "add to a configuration that is there; a copy is kept")
	f.BoolVar(&o.replace, "replace", false, "replace a configuration that is there; a copy is kept")
	f.BoolVar(&o.untested, "no-test", false, "write it without trying the model and the accounts")
	f.BoolVar(&o.noChat, "no-chat", false, "end when the configuration is written")
	c.RunE = func(c *cobra.Command, _ []string) error { return errors.Join(err, o.run(c.Context())) }
	return c
}

func (o *onboard) run(ctx context.Context) (err error) {
	if o.ask = o.NewAsker(); o.ask == nil && o.provider == "" {
		return cli.Misuse(fmt.Errorf("onboard asks in a terminal; elsewhere say --provider with one of %s, local, offline",
			strings.Join(ids(), ", ")))
	}
	if o.ask != nil {
		fmt.Fprintln(o.Out, "Parley set-up. Enter takes what stands in [ ], Ctrl-C ends without a change.")
	}
	if o.file, err = o.place(); err != nil {
		return err
	}
	if o.try, err = gateway.NewSetupProbe(gateway.Options{Channels: all.Factories()}); err != nil {
		return err
	}
	defer o.try.Close()
	if err := o.meet(); err != nil {
		return err
	}
	for {
		if err := o.chooseModel(ctx); errors.Is(err, errAgain) {
			continue
		} else if err != nil {
			return err
		}
		again, err := o.tryModel(ctx)
		if err != nil {
			return err
		}
		if !again {
			break
		}
	}
	if err := o.chooseAgent(); err != nil {
		return err
	}
	if err := o.choosePerson(); err != nil {
		return err
	}
	if err := o.chooseNetworks(ctx); err != nil {
		return err
	}
	if err := o.write(time.Now()); err != nil {
		return err
	}
	return o.begin(ctx)
}

// place is the file that is written: the one that is in force, or else that of the user's configuration folder.
func (o *onboard) place() (string, error) {
	opt, err := o.LoadOptions()
	if err != nil {
		return "", err
	}
	path, err := configs.Place(opt)
	if err != nil {
		return "", fmt.Errorf("find the place of the configuration: %w", err)
	}
	return path, nil
}

// tryModel asks the model for a sentence, and says whether to choose again.
func (o *onboard) tryModel(ctx context.Context) (again bool, err error) {
	if o.untested || o.model.API == "offline" {
		return false, nil
	}
	done := o.Progress("asking " + o.model.Model)
	got, err := o.try.Model(ctx, snapshot.Ask{Provider: o.provider, BaseURL: o.model.BaseURL, Key: o.model.APIKey.Reveal(),
		Model: o.model.Model})
	done()
	if err != nil {
		return false, err
	}
	if got.Trouble == nil {
		fmt.Fprintf(o.Out, "%s %s says: %s\n   %s\n", cli.Paint(o.Out, cli.Green, "ok"), cli.Visible(o.model.Model),
			cli.Visible(cli.Cut(got.Trial.Answer, 200)), cli.Paint(o.Out, cli.Dim, spent(*got.Trial)))
		return false, nil
	}
	if o.ask == nil {
		return false, fmt.Errorf("%s (--no-test writes it all the same)", got.Trouble.Sentence)
	}
	return o.chooseAgain(got.Trouble)
}

// chooseAgain tells of a trouble, and asks whether to choose again or to go on all the same.
func (o *onboard) chooseAgain(t *provider.Trouble) (again bool, err error) {
	o.say("", cli.Paint(o.Out, cli.Red, "That did not work:")+" "+cli.Visible(t.Sentence))
	next, err := o.ask.One("What now?",
		[]cli.Choice{{ID: "again", Label: "choose again"}, {ID: "keep", Label: "keep it as it is; it may work later"},
			{ID: "end", Label: "end without a change"}}, "again")
	switch {
	case err != nil:
		return false, err
	case next == "end":
		return false, cli.ErrAborted
	case next == "again":
		o.provider, o.modelName, o.keyFile, o.baseURL = "", "", "", ""
	}
	return next == "again", nil
}

// spent is what the call took.
func spent(t snapshot.Trial) string {
	text := fmt.Sprintf("%s, %d tokens in, %d out", cli.Length(t.Took),
		t.Usage.InputTokens+t.Usage.CacheReadTokens+t.Usage.CacheWriteTokens, t.Usage.OutputTokens)
	if t.Usage.CostUSD != nil && *t.Usage.CostUSD > 0 {
		text += fmt.Sprintf(", $%.5f", *t.Usage.CostUSD)
	}
	return text
}

// begin starts the gateway, or has the running one read the file, and ends in a chat.
func (o *onboard) begin(ctx context.Context) error {
	o.Config = o.file
	if _, ok := o.Terminal(); !ok || o.ask == nil || o.noChat {
		fmt.Fprintf(o.Out, "Next: %[1]s gateway%[2]s, and beside it: %[1]s chat\n", cli.Program(), o.named())
		o.pairingHint()
		return nil
	}
	cl, err := o.Client()
	if err != nil {
		return err
	}
	running := cl.Get(ctx, "/healthz", nil) == nil
	cl.Close()
	if running {
		return o.join(ctx)
	}
	serves, err := o.serve(ctx)
	if err != nil || serves {
		return err
	}
	return o.host(ctx)
}

// serve offers to run the gateway as a service from now on, where that can be done, and ends in a chat with it.
func (o *onboard) serve(ctx context.Context) (bool, error) {
	if !service.Usable(ctx) {
		return false, nil
	}
	fmt.Fprintln(o.Out)
	o.say("", "The gateway can run as a service of your user (systemd), also when you leave. Otherwise it runs as long as this chat.")
	yes, err := o.ask.Yes("Install the service?", true)
	if err != nil || !yes {
		return false, err
	}
	if err := service.Install(ctx, o.App); err != nil {
		fmt.Fprintf(o.Out, "%s %s\n", cli.Paint(o.Out, cli.Red, "The service did not start, and is removed:"), cli.Visible(err.Error()))
		return false, service.Uninstall(ctx, o.App)
	}
	o.say("", cli.Hinted("It runs, and starts again with this machine once you are logged in. While you are logged out as well: loginctl "+
		"enable-linger. To undo it: parley service uninstall"))
	o.pairingHint()
	return true, o.talk(ctx)
}

// named are the flags that lead to the same configuration.
func (o *onboard) named() string {
	if opt, err := (&cli.App{}).LoadOptions(); err == nil {
		if path, err := configs.Place(opt); err == nil && path == o.file {
			return ""
		}
	}
	return " --config " + o.file
}

// host runs the gateway as long as the chat.
func (o *onboard) host(ctx context.Context) (err error) {
	src, c, err := o.Load()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(c.DataDir, "gateway.log")
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	g, _ := daemon.New(src, o.Version, daemon.Log{To: file}, gateway.OnLoss(false, false))
	if err := g.Start(ctx); err != nil {
		return fmt.Errorf("start the gateway: %w", cli.Hint(err))
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), daemon.Drain)
		defer cancel()
		err = errors.Join(err, g.Stop(ctx))
		fmt.Fprintf(o.Out, "The gateway stopped with this chat. Start it again: %[1]s gateway%[2]s\nOr have it always run: %[1]s "+
			"service install%[2]s\n", cli.Program(), o.named())
	}()
	fmt.Fprintf(o.Out, "The gateway runs at %s as long as this chat; its log is %s\n", g.URL(), name)
	fmt.Fprint(o.Out, cli.SignInLinks(g.SignInURL()))
	o.pairingHint()
	return o.talk(ctx)
}

// join has the running gateway read the file.
func (o *onboard) join(ctx context.Context) error {
	cl, err := o.AwaitClient(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.Post(ctx, "/v1/config/reload", nil, nil); err != nil {
		return cli.Hint(err)
	}
	done := o.Progress("having the running gateway read it")
	ok := o.inForce(ctx, cl)
	done()
	if !ok {
		return fmt.Errorf("the gateway that runs at %s has another configuration; stop it, and start: parley gateway%s", cl.Base(),
			o.named())
	}
	fmt.Fprintf(o.Out, "The running gateway at %s uses it now.\n", cl.Base())
	o.pairingHint()
	return o.talk(ctx)
}

// inForce waits a little until the gateway names the model.
func (o *onboard) inForce(ctx context.Context, cl *client.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		st, err := cli.Status(ctx, cl, "")
		for _, m := range st.Models {
			if err == nil && (m.Model == o.model.Model || o.model.API == "offline") {
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
		}
	}
}

func (o *onboard) pairingHint() {
	for _, j := range o.joins {
		for _, step := range j.After {
			o.say(j.Title+": ", plain(step))
		}
	}
	if len(o.joins) > 0 {
		o.say("", cli.Hinted("Approve the code beside the running gateway: parley pairing approve CODE --as owner"))
	}
}

func (o *onboard) talk(ctx context.Context) error {
	cl, err := o.AwaitClient(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	return chat.Run(ctx, o.App, cl, "main")
}
