package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/afero"
	"github.com/spf13/viper"
)

// Load finds, reads and checks the configuration. Its error is a *Error that holds every problem at once, unless the file
// cannot be found or read. No file at all is fine: then everything is default.
//
// Every key that is no list and not inside one can also be given by an environment variable, which wins over the file:
// PARLEY_ and the key in capitals with _ for each dot, such as PARLEY_GATEWAY_LISTEN.
func Load(o LoadOptions) (*Config, error) {
	env := newEnvironment(o.Env)
	path, err := find(o.Path, env)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return read(nil, "", o.Sections, env)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return read(data, path, o.Sections, env)
}

// LoadGateway is Load for a client of the gateway: of what is wrong it minds only what keeps it from knowing where the
// gateway listens and with which token, so that a half-written file, or a variable that only the daemon has, does not cut it off.
func LoadGateway(o LoadOptions) (*Config, error) {
	env := newEnvironment(o.Env)
	path, err := find(o.Path, env)
	if err != nil {
		return nil, err
	}
	var data []byte
	if path != "" {
		if data, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	c, err := readAll(data, path, o.Sections, env)
	var wrong *Error
	if !errors.As(err, &wrong) {
		return c, err
	}
	minded := slices.DeleteFunc(wrong.Problems, func(p Problem) bool {
		return p.Path != "" && p.Path != "data_dir" && p.Path != "gateway" && !strings.HasPrefix(p.Path, "gateway.")
	})
	if len(minded) == 0 {
		return c, nil
	}
	return nil, &Error{File: wrong.File, Problems: minded}
}

// Parse is Load for a text that is not, or not yet, a file. Relative paths start at the folder of o.Path.
func Parse(data []byte, o LoadOptions) (*Config, error) {
	return read(data, o.Path, o.Sections, newEnvironment(o.Env))
}

// environment reads variables: those of the process by viper, or those that were handed in.
type environment struct {
	viper  *viper.Viper // fresh for each load: it is not safe to share
	lookup Lookup
	own    bool // the process's
}

func newEnvironment(lookup Lookup) environment {
	v := viper.New()
	v.SetEnvPrefix("parley")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	if lookup == nil {
		return environment{viper: v, lookup: os.LookupEnv, own: true}
	}
	return environment{viper: v, lookup: lookup}
}

// EnvName is the variable that overrides a key.
func EnvName(path string) string {
	return "PARLEY_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// setting is the override of a key. An empty variable counts as unset.
func (e environment) setting(path string) (string, bool) {
	if e.own {
		if err := e.viper.BindEnv(path); err != nil {
			return "", false // only an empty path is refused
		}
		return e.viper.GetString(path), e.viper.IsSet(path)
	}
	value, _ := e.lookup(EnvName(path))
	return value, value != ""
}

// find is the absolute path of the file; empty when there is none. A file that somebody named must exist.
func find(path string, env environment) (string, error) {
	if path == "" {
		path, _ = env.setting("config")
	}
	if path != "" {
		path, err := absolute(path, ".", env.lookup)
		if err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	v := viper.NewWithOptions(viper.WithFinder(places{env}))
	var none viper.ConfigFileNotFoundError
	if err := v.ReadInConfig(); errors.As(err, &none) {
		return "", nil
	}
	// What viper thinks of its content does not matter: the strict decoder says it with lines.
	return filepath.Abs(v.ConfigFileUsed())
}

// Place is the file that the options mean, or, where there is none, the one in the user's configuration folder that would be
// read if it were there.
func Place(o LoadOptions) (string, error) {
	env := newEnvironment(o.Env)
	path, err := find(o.Path, env)
	if err != nil || path != "" {
		return path, err
	}
	dir, err := userDir(env.lookup, "XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "parley", "parley.yaml"), err
}

// places are where viper looks for the file. Its own search would also take ./parley, which may be our binary.
type places struct{ env environment }

func (p places) Find(files afero.Fs) ([]string, error) {
	candidates := []string{"parley.yaml"}
	if dir, err := userDir(p.env.lookup, "XDG_CONFIG_HOME", ".config"); err == nil {
		candidates = append(candidates, filepath.Join(dir, "parley", "parley.yaml"))
	}
	return slices.DeleteFunc(candidates, func(path string) bool {
		info, err := files.Stat(path)
		return errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir()
	}), nil
}

// userDir is one of the XDG base directories.
func userDir(env Lookup, variable, fallback string) (string, error) {
	if dir, _ := env(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := homeDir(env)
	return filepath.Join(home, fallback), err
}

// read decodes, completes and checks.
func read(data []byte, path string, sections []Section, env environment) (*Config, error) {
	c, err := readAll(data, path, sections, env)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// readAll is read that returns what it understood beside the error.
func readAll(data []byte, path string, sections []Section, env environment) (*Config, error) {
	c := &Config{Path: path}
	base := filepath.Dir(path) // "." without a file
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, fmt.Errorf("find the current folder: %w", err)
	}
	d := &decoder{report: newReport(path, data != nil), sections: sections}
	d.expander = expander{env: env.lookup, base: base, fromFile: func(text string) { c.revealed = append(c.revealed, text) }}
	root := reflect.ValueOf(c).Elem()
	d.defaults("", root)
	if node := d.parse(data); node != nil {
		c.empty = node.ShortTag() == "!!null"
		d.value("", node, root, "")
	} else {
		c.empty = true
	}
	c.overridden = map[string]string{}
	d.override("", root, env, c.overridden)
	d.complete(c)
	d.checkTags(c)
	d.checkRules(c)
	d.checkEnvironment(c)
	c.unread = d.unreadHere()
	return c, d.err()
}

// checkEnvironment holds the variables that stand for a model against what one needs: what is meant and cannot be used is
// said with its name.
func (d *decoder) checkEnvironment(c *Config) {
	const name = "OPENAI_BASE_URL"
	base, _ := d.env(name)
	other, _ := d.env("ANTHROPIC_API_KEY")
	if base = strings.TrimSpace(base); len(c.Models) > 0 || d.failed["models"] || base == "" || strings.TrimSpace(other) != "" {
		return
	}
	d.places["models"] = place{env: name}
	rules{d.report, c}.address("models", base)
}

// override sets the keys outside lists that the environment gives.
func (d *decoder) override(path string, v reflect.Value, env environment, given map[string]string) {
	for _, f := range fieldsOf(v.Type()) {
		at, fv := key(path, f.name), v.FieldByIndex(f.index)
		if f.typ.Kind() == reflect.Struct {
			d.override(at, fv, env, given)
			continue
		}
		if !isScalar(f.typ) {
			continue
		}
		text, ok := env.setting(at)
		if !ok {
			continue
		}
		d.places[at] = place{env: EnvName(at)}
		given[at] = EnvName(at)
		delete(d.failed, at)
		// The variable's text is taken as it is: nothing in it is expanded.
		d.scalar(at, scalarNode(strings.ReplaceAll(text, "$", "$$"), f.typ), fv, f.tag)
		delete(d.raw, at)
	}
}

// complete fills what follows from other keys, and makes file names absolute.
func (d *decoder) complete(c *Config) {
	if c.DataDir == "" {
		dir, err := userDir(d.env, "XDG_DATA_HOME", filepath.Join(".local", "share"))
		if err != nil {
			d.add("data_dir", "%s", err)
		}
		c.DataDir = filepath.Join(dir, "parley")
	}
	for i := range c.Models {
		c.Models[i].complete()
	}
	if len(c.Agents) == 0 && !d.failed["agents"] {
		c.Agents = []Agent{{ID: "assistant", Name: "Assistant", Default: true}}
		d.defaults("agents[0]", reflect.ValueOf(&c.Agents[0]).Elem())
	}
	if len(c.Agents) == 1 {
		c.Agents[0].Default = true
	}
	for i := range c.Agents {
		a := &c.Agents[i]
		a.Name = either(a.Name, a.ID)
		if a.Model == "" && len(c.Models) > 0 {
			a.Model = c.Models[0].Name
		}
	}
	for i := range c.People {
		c.People[i].Name = either(c.People[i].Name, c.People[i].ID)
	}
	walk("", reflect.ValueOf(c).Elem(), func(path string, v reflect.Value, tag reflect.StructTag) bool {
		if tag.Get("path") == "true" && v.Kind() == reflect.String && v.String() != "" {
			clean, err := absolute(v.String(), d.base, d.env)
			if err != nil {
				d.add(path, "%s", err)
			}
			v.SetString(clean)
		}
		return true
	})
	for i := range c.Agents {
		a := &c.Agents[i]
		a.Workspace = either(a.Workspace, filepath.Join(c.DataDir, "agents", a.ID))
	}
	for i := range c.Hooks {
		for _, a := range c.Agents {
			if a.Default {
				c.Hooks[i].Agent = either(c.Hooks[i].Agent, a.ID)
			}
		}
	}
}

func (m *Model) complete() {
	switch m.API {
	case "anthropic":
		m.BaseURL = either(m.BaseURL, "https://api.anthropic.com")
	case "openai":
		m.BaseURL = either(m.BaseURL, "https://api.openai.com/v1")
	case "offline":
		m.Model = either(m.Model, "offline")
	}
}

func either(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
