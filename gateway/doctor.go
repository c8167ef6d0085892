package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"parley/agentloop/llm/price"
	"parley/agentloop/llm/provider"
	"parley/channels"
	"parley/configs"
	"parley/configs/origin"
	"parley/gateway/snapshot"
	"parley/tools/sandbox"
	"parley/workspace/blob"
	"parley/workspace/disk"
	"parley/workspace/folder"
	"parley/workspace/store"
)

// Finding is one line of `parley doctor`.
type Finding = channels.Finding

// checkWithin bounds one look at something outside.
const checkWithin = 10 * time.Second

// Doctor examines what a configuration names, without a gateway: files, store, channels, models. running says that
// one holds the data directory; then the store is left to it. It leaves nothing behind.
func Doctor(ctx context.Context, opt Options, running bool) []Finding {
	c := opt.Source.Current()
	you := snapshot.Owner(c)
	list := []Finding{good("you are person %s, an %s: so the command line and the API take you", you.Person, you.Role)}
	list = append(append(list, checkFolder(c)...), checkToken(c))
	list = append(list, checkPublic(ctx, c, running)...)
	for _, w := range Warnings(c) {
		list = append(list, Finding{OK: true, Warn: true, What: w.Error()})
	}
	if !running {
		list = append(list, checkStore(ctx, c)...)
	}
	g := New(opt)
	defer g.http.CloseIdleConnections()
	list = append(list, g.checkSandbox(ctx, c)...)
	list = append(list, checkFolders(c)...)
	return append(append(list, g.checkChannels(ctx, c)...), g.checkModels(ctx, c)...)
}

// checkSandbox tries the sandbox as the gateway would at its start.
func (g *Gateway) checkSandbox(ctx context.Context, c *configs.Config) []Finding {
	if c.Sandbox.Backend == "none" {
		return []Finding{good("commands are off: sandbox.backend is none")}
	}
	s := snapshot.NewSandbox(c, snapshot.SandboxOptions{Backend: g.opt.Sandbox, Log: g.log})
	r := s.Probe(ctx) // which sets itself a limit
	if r.Tier == sandbox.TierNone {
		hint := "Agents work without commands; docs/sandbox.md says what one needs. sandbox.backend: none ends this finding."
		if runtime.GOOS != "linux" {
			return []Finding{{OK: true, What: "no command runs here: " + strings.Join(r.Reasons, "; "), Hint: hint}}
		}
		return []Finding{bad(hint, "no command runs here: %s", strings.Join(r.Reasons, "; "))}
	}
	return []Finding{{OK: true, What: "sandbox for commands: " + r.String(), Hint: strings.Join(r.Reasons, "; ")}}
}

// checkFolders looks through the folders that agents may write, as the gateway does when it loads them.
func checkFolders(c *configs.Config) (list []Finding) {
	w := folder.New(folder.Options{More: c.Sandbox.ControlPaths})
	defer w.Close()
	for _, a := range c.Agents {
		for _, f := range a.Folders {
			if f.Mode != "rw" {
				continue
			}
			seen, err := w.Look(f.Path)
			switch {
			case err != nil:
				list = append(list, bad("Check its path in folders of agent "+a.ID+".", "folder %s: %v", f.As, err))
			case seen.Closed != "":
				list = append(list, Finding{OK: true, What: fmt.Sprintf("folder %s is read-only for commands: %s", f.As, seen.Closed), Hint: "docs/sandbox.md says what can be done."})
			default:
				list = append(list, good("folder %s: %d control paths are protected", f.As, seen.Control))
			}
		}
	}
	return list
}

func good(format string, args ...any) Finding {
	return Finding{OK: true, What: fmt.Sprintf(format, args...)}
}

func bad(hint, format string, args ...any) Finding {
	return Finding{What: fmt.Sprintf(format, args...), Hint: hint}
}

func checkFolder(c *configs.Config) []Finding {
	info, err := os.Stat(c.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := canMake(c.DataDir); err != nil {
			return []Finding{bad("Name another folder in data_dir, or with --data-dir.", "data directory %s cannot be made: %v", c.DataDir, err)}
		}
		return []Finding{good("data directory %s is made at the first start", c.DataDir)}
	case err != nil:
		return []Finding{bad("Check the folders above it.", "data directory: %v", err)}
	case !info.IsDir():
		return []Finding{bad("Name a folder in data_dir.", "data directory %s is not a folder", c.DataDir)}
	}
	list := []Finding{good("data directory %s", c.DataDir)}
	if err := canWrite(c.DataDir); err != nil {
		return []Finding{bad("Run doctor as the user of the gateway; if you did, give that user the folder, or name another one.",
			"data directory %s cannot be written: %v", c.DataDir, err)}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		list[0] = bad("chmod 700 "+c.DataDir, "data directory %s can be entered by others (mode %04o)", c.DataDir, mode)
	}
	return append(list, checkSpace(c)...)
}

// checkSpace compares what is free with what must stay free.
func checkSpace(c *configs.Config) []Finding {
	s, ok := diskOf(c, nil).Space(c.DataDir)
	stay := disk.Size(s.Floor + s.Reserve)
	switch {
	case !ok:
		return nil
	case s.Useless():
		return []Finding{bad("Set sandbox.disk_floor, or take a larger disk.", "its disk has %s in all, and %s stay free for the gateway: no command runs, and no file is taken", disk.Size(s.Total), stay)}
	case s.Low():
		return []Finding{bad("Make room. With a full disk no message is taken.",
			"its disk has %s free, less than the %s that stay free: no command runs, and no file is taken", disk.Size(s.Free), stay)}
	case s.Small:
		return []Finding{{OK: true, What: fmt.Sprintf("its disk has %s free of %s; a small one: %s stay free for the gateway", disk.Size(s.Free), disk.Size(s.Total), stay), Hint: "sandbox.disk_floor sets how much."}}
	}
	return []Finding{good("its disk has %s free, of which %s stay free", disk.Size(s.Free), stay)}
}

// canMake tries in the nearest folder above that exists, and leaves nothing there.
func canMake(dir string) error {
	for above := filepath.Dir(dir); ; above = filepath.Dir(above) {
		_, err := os.Stat(above)
		switch {
		case err == nil:
			return canWrite(above)
		case !errors.Is(err, fs.ErrNotExist) || above == filepath.Dir(above):
			return err
		}
	}
}

// canWrite makes a folder there, which only trying tells, and removes it.
func canWrite(dir string) error {
	made, err := os.MkdirTemp(dir, ".parley-doctor-")
	if err != nil {
		return errors.Unwrap(err)
	}
	return os.Remove(made)
}

func checkToken(c *configs.Config) Finding {
	token, err := Token(c)
	switch {
	case err != nil:
		return bad("Run doctor as the user of the gateway.", "token: %v", err)
	case token == "":
		return good("token is made at the first start")
	case len(token) < 22:
		return bad("Take one of at least 22 random characters, such as: openssl rand -hex 16", "token has only %d characters", len(token))
	case c.Gateway.Token != "":
		return good("token from the configuration")
	}
	name := filepath.Join(c.DataDir, tokenFile)
	if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
		return bad("chmod 600 "+name, "token file can be read by others (mode %04o)", info.Mode().Perm())
	}
	return good("token file %s", name)
}

// checkPublic asks the gateway at the address that others have, as one of them would.
func checkPublic(ctx context.Context, c *configs.Config, running bool) []Finding {
	public := origin.Of(c.Gateway.PublicURL)
	if public == "" {
		return nil
	}
	if !running {
		return []Finding{good("others reach it at %s, by gateway.public_url", public)}
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	why := ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, public+"/healthz", nil)
	if err == nil {
		var res *http.Response
		if res, err = (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req); err == nil {
			_ = res.Body.Close() // it was not read
			if res.StatusCode == http.StatusOK {
				return []Finding{good("others reach it at %s, by gateway.public_url", public)}
			}
			why = fmt.Sprintf("answers %d", res.StatusCode)
		}
	}
	if err != nil {
		why = "is not reached: " + channels.CauseOf(err)
	}
	return []Finding{bad("Check the proxy before the gateway: it passes Host and Origin on. docs/channels/webchat.md has examples.",
		"gateway.public_url %s %s", public, why)}
}

func checkStore(ctx context.Context, c *configs.Config) []Finding {
	name := filepath.Join(c.DataDir, "parley.db")
	loss, blind, err := store.LossIn(ctx, c.DataDir)
	switch {
	case err != nil:
		return []Finding{bad("Restore a backup into an empty data directory: parley restore FILE", "database: %v", err)}
	case loss != nil:
		return []Finding{bad(store.WaysOn, "database: %s", loss.What())}
	}
	if info, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return []Finding{good("database is made at the first start")}
	}
	if err := store.VerifyFile(ctx, name); err != nil {
		return []Finding{bad("Restore a backup into an empty data directory: parley restore FILE", "database: %v", err)}
	}
	list := []Finding{good("database is sound, every row of it")}
	for _, what := range blind {
		list = append(list, bad("The next start makes it again, and notes that in the audit log. Whether rows were cut off before, nothing here can tell.", "beside the database: %s", what))
	}
	return append(list, checkBlobs(ctx, c)...)
}

// blobsShown is how many kept files a doctor names.
const blobsShown = 20

// checkBlobs reads the kept files.
func checkBlobs(ctx context.Context, c *configs.Config) []Finding {
	refs, err := store.BlobRefsIn(ctx, c.DataDir)
	if err != nil {
		return []Finding{bad("Restore a backup into an empty data directory: parley restore FILE", "kept files: %v", err)}
	}
	wrong := blob.In(c.DataDir).Verify(refs)
	if len(wrong) == 0 {
		return []Finding{good("kept files are sound, all %d of them", len(refs))}
	}
	list := []Finding{bad("Put the files back into blobs/ from a backup. Until then people are told that they are missing or damaged.",
		"%d of %d kept files are missing or damaged", len(wrong), len(refs))}
	for _, err := range wrong[:min(len(wrong), blobsShown)] {
		list = append(list, bad("", "%v", err))
	}
	return list
}

// checkChannels asks each network about its account.
func (g *Gateway) checkChannels(ctx context.Context, c *configs.Config) []Finding {
	if err := g.openChannels(c); err != nil {
		return []Finding{bad("Correct the configuration.", "%v", err)}
	}
	var list []Finding
	for _, l := range g.channels.All() {
		within, cancel := context.WithTimeout(ctx, checkWithin)
		for _, f := range l.Check(within) {
			f.What = fmt.Sprintf("channel %s: %s", l.Name, f.What)
			list = append(list, f)
		}
		cancel()
	}
	return list
}

// checkModels asks each model's server for its list; without a configured model it says where one was looked for.
func (g *Gateway) checkModels(ctx context.Context, c *configs.Config) []Finding {
	var list []Finding
	for _, m := range c.Models {
		list = append(list, g.checkModel(ctx, m))
	}
	if len(c.Models) > 0 {
		return list
	}
	d := configs.Discover(ctx, g.opt.Env, g.models(nil).Probe)
	for _, l := range d.Looked {
		list = append(list, good("looked for a model: %s %s", l.Where, l.Why))
	}
	if d.Model.API == "offline" {
		return append(list, Finding{OK: true, Todo: true, What: "no model is configured or found; the built-in responder answers",
			Hint: "Run parley onboard, set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local server."})
	}
	list = append(list, good("no model is configured; %s (%s) is used, found by %s", d.Model.Name, d.Model.Model, d.Model.Found))
	return append(list, g.checkModel(ctx, d.Model))
}

func (g *Gateway) checkModel(ctx context.Context, m configs.Model) Finding {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if m.API == "offline" {
		return good("model %s is the built-in responder", m.Name)
	}
	_, _, err := provider.List(ctx, g.http, provider.Target{Provider: provider.Of(m.API, m.BaseURL), API: m.API, BaseURL: m.BaseURL,
		Key: m.APIKey.Reveal(), Exact: true})
	var t *provider.Trouble
	if !errors.As(err, &t) {
		return good("model %s answers at %s", m.Name, m.BaseURL)
	}
	switch t.Code {
	case provider.NotFound, provider.Refused: // not every server lists its models
		return good("model %s answers at %s, without a list of models", m.Name, m.BaseURL)
	case provider.KeyRefused, provider.KeyMissing:
		return bad("Check its api_key.", "model %s: %s", m.Name, t.Sentence)
	case provider.NoCredit, provider.Limited, provider.Failing:
		return bad("Try again later.", "model %s: %s", m.Name, t.Sentence)
	}
	return bad("Correct base_url, or start the server.", "model %s: %s", m.Name, t.Sentence)
}

// SetupProbe tries what a configuration would name before there is one. It writes nothing.
type SetupProbe struct {
	g      *Gateway
	models *snapshot.Models
}

// NewSetupProbe tries with the channels and the environment of the options. Close it.
func NewSetupProbe(opt Options) (*SetupProbe, error) {
	g := New(opt)
	prices, err := price.Load(nil, g.opt.Now)
	if err != nil {
		return nil, fmt.Errorf("load prices: %w", err)
	}
	return &SetupProbe{g, g.models(prices)}, nil
}

// Close ends idle connections.
func (p *SetupProbe) Close() {
	p.g.http.CloseIdleConnections()
	p.g.calls.CloseIdleConnections()
}

// Model lists the models of a server and, where one is named, asks it for a sentence.
func (p *SetupProbe) Model(ctx context.Context, a snapshot.Ask) (snapshot.Tried, error) {
	return p.models.Attempt(ctx, &configs.Config{}, a)
}

// Channels asks the network of each channel about its account.
func (p *SetupProbe) Channels(ctx context.Context, c *configs.Config) []Finding {
	return p.g.checkChannels(ctx, c)
}
