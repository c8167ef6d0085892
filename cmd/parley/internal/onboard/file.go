// The configuration that is written, with its credentials in files beside it.

package onboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/cmd/parley/internal/cli"
	"parley/configs"
)

// usualOutput is the default of max_output_tokens.
const usualOutput = 8192

// quoted is a text as YAML has it, with nothing in it expanded.
func quoted(text string) string {
	data, err := json.Marshal(strings.ReplaceAll(text, "$", "$$"))
	if err != nil { // a string always marshals
		return `""`
	}
	return string(data)
}

// text is the configuration file. Credentials are in files of their own beside it.
func (o *onboard) text(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Parley's configuration, written by parley onboard on %s.
# All keys: docs/configuration.md, or parley config schema. After a change: parley config check.
# A saved change is in force at once; data_dir and listen wait for a restart.
`, now.Format(time.DateOnly))
	if o.DataDir != "" {
		if dir, err := filepath.Abs(o.DataDir); err == nil {
			fmt.Fprintf(&b, "\ndata_dir: %s\n", quoted(dir))
		}
	}
	if o.model.API == "offline" {
		b.WriteString("\nmodels: []   # none yet: one is looked for by itself (docs/models.md). To name one, write instead:\n" +
			"# models:\n#   - {name: claude, api: anthropic, api_key: \"${ANTHROPIC_API_KEY}\", model: claude-sonnet-4-5, " +
			"context_window: 200000}\n")
	} else {
		fmt.Fprintf(&b, "\nmodels:\n  - name: %s\n    api: %s\n    base_url: %s\n", o.model.Name, o.model.API, quoted(o.model.BaseURL))
		if o.model.APIKey != "" {
			fmt.Fprintf(&b, "    api_key: \"${file:secrets/%s}\"   # a file of its own, so that this one can be shown to others\n",
				o.model.Name)
		}
		fmt.Fprintf(&b, "    model: %s\n    context_window: %d\n", quoted(o.model.Model), o.model.ContextWindow)
		if o.model.MaxOutputTokens != usualOutput {
			fmt.Fprintf(&b, "    max_output_tokens: %d\n", o.model.MaxOutputTokens)
		}
	}
	if o.person.id != "" {
		fmt.Fprintf(&b, "\npeople:\n  - id: %s\n    name: %s\n    role: owner\n    tz: %s\n", quoted(o.person.id), quoted(o.person.name),
			quoted(o.person.zone))
	}
	if len(o.joins) > 0 {
		b.WriteString("\nchannels:\n")
	}
	for _, j := range o.joins {
		fmt.Fprintf(&b, "  - name: %s\n    type: %s\n", j.Name, j.Type)
		for _, f := range j.Fields {
			fmt.Fprintf(&b, "    %s: \"${file:secrets/%s}\"\n", f.Key, j.file(f))
		}
		b.WriteString("    access: {dm: pairing}   # strangers get a code: parley pairing approve CODE --as owner\n")
	}
	return b.String()
}

// whole is the text that is written: a new one, or the one that is there with the answers in it.
func (o *onboard) whole(now time.Time) (string, error) {
	if o.had != nil {
		return o.added()
	}
	return o.text(now), nil
}

// write puts the files into place: readable by their owner only, a copy of what they replace beside them.
func (o *onboard) write(now time.Time) error {
	text, err := o.whole(now)
	if err != nil {
		return err
	}
	dir := filepath.Dir(o.file)
	stamp := now.Format("20060102-150405")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	secrets := map[string]string{o.model.Name: o.model.APIKey.Reveal()}
	for _, j := range o.joins {
		for i, f := range j.Fields {
			secrets[j.file(f)] = j.values[i]
		}
	}
	for name, secret := range secrets {
		if secret == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, "secrets"), 0o700); err != nil {
			return err
		}
		if _, err := replaceFile(filepath.Join(dir, "secrets", name), secret+"\n", stamp); err != nil {
			return err
		}
	}
	opt, err := o.LoadOptions()
	if err != nil {
		return err
	}
	opt.Path = o.file
	if _, err := configs.Parse([]byte(text), opt); err != nil {
		return fmt.Errorf("what would be written is not a good configuration: %w", err)
	}
	if now, err := os.ReadFile(o.file); o.had != nil && (err != nil || string(now) != string(o.had.text)) {
		return fmt.Errorf("%s has changed meanwhile; begin again", o.file)
	}
	kept, err := replaceFile(o.file, text, stamp)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "\n%s is written.\n", o.file)
	if kept != "" {
		fmt.Fprintf(o.Out, "The old one is kept as %s.\n", kept)
	}
	return nil
}

// replaceFile writes a file whole or not at all, mode 0600, and keeps a copy of another content that was there.
func replaceFile(name, text, stamp string) (kept string, err error) {
	old, err := os.ReadFile(name)
	switch {
	case err == nil && string(old) == text:
		return "", nil
	case err == nil:
		kept = name + ".bak-" + stamp
		if err := cli.WriteFile(kept, string(old)); err != nil {
			return "", err
		}
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	return kept, cli.WriteFile(name, text)
}
