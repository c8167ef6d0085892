package setup_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/configs"
	"parley/configs/edit"
	"parley/configs/guard"
	"parley/configs/source"
	"parley/gateway/setup"
)

// A change is in force when it returns; all else of the text stays, and a credential goes into a file of its own.
func TestChangeIsInForceAndKeepsTheText(t *testing.T) {
	t.Parallel()
	r := newRig(t, first)
	done, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "models[near]", `{name: near, model: l}`), set(t, "agents[assistant].name", "Ada")},
		Secrets: []setup.Secret{{Path: "models[near].api_key", Value: "  sk-given-here\n"}}})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Current()
	if len(c.Models) != 2 || c.Models[1].APIKey.Reveal() != "sk-given-here" || c.Agents[0].Name != "Ada" {
		t.Errorf("in force is %+v", c.Models)
	}
	kept := r.secrets()
	if len(kept) != 1 || strings.Contains(r.text(), "sk-given-here") || !strings.Contains(r.text(), "# the good one") {
		t.Errorf("%v in\n%s", kept, r.text())
	}
	for name, value := range kept {
		if !strings.HasPrefix(name, "near-api_key.") || value != "sk-given-here\n" || !strings.Contains(r.text(), "${file:secrets/"+name+"}") {
			t.Errorf("%s holds %q, the text is\n%s", name, value, r.text())
		}
	}
	if f, err := r.File(); err != nil || f.Revision != done.Revision || len(r.left()) > 0 {
		t.Errorf("revision %s, %s; left %q, %v", f.Revision, done.Revision, r.left(), err)
	}
	if !slices.Contains(done.Changed, "models[near].api_key") || !slices.Equal(r.notes, []string{"config.changed"}) {
		t.Errorf("changed %q, noted %q", done.Changed, r.notes)
	}
	// another one takes its place: the former file goes
	if _, err := r.change(r.owner(), setup.Edit{Secrets: []setup.Secret{{Path: "models[near].api_key", Value: "sk-another"}}}); err != nil {
		t.Fatal(err)
	}
	if now := slices.Collect(maps.Values(r.secrets())); !slices.Equal(now, []string{"sk-another\n"}) {
		t.Errorf("kept are %q", now)
	}
}

// A credential that comes as an ordinary value, alone or in an item, goes into a file all the same.
func TestCredentialInAValueGoesIntoAFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, first)
	for _, s := range []setup.Set{set(t, "models[near]", `{name: near, model: l, api_key: sk-in-an-item}`), set(t, "models[near].api_key", "sk-as-a-value"),
		set(t, "channels[tg].token", `"2:as-a-value"`), set(t, "models", `[{name: far, model: l, api_key: sk-in-a-list}]`)} {
		if _, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{s}}); err != nil {
			t.Fatal(s.Path, err)
		}
		if strings.Contains(r.text(), "sk-") || strings.Contains(r.text(), "2:as") {
			t.Errorf("%s is in the text:\n%s", s.Path, r.text())
		}
	}
	if c := r.Current(); len(c.Models) != 1 || c.Models[0].APIKey.Reveal() != "sk-in-a-list" || len(r.secrets()) != 2 {
		t.Errorf("%+v, %v", c.Models, r.secrets())
	}
	before := r.text()
	if _, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "models[far]", `{name: far, model: m, api_key: "`+edit.Mask+`"}`)}}); err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(before, "model: l", "model: m", 1); r.text() != want || r.Current().Models[0].APIKey.Reveal() != "sk-in-a-list" {
		t.Errorf("with a mask in place of what is kept:\n%s\nwant\n%s", r.text(), want)
	}
}

// What refuses a change leaves file, credentials and what is in force as they were.
func TestRefusedChangeLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, first, "PARLEY_CONCURRENCY_PER_MODEL=9")
	key := []setup.Secret{{Path: "models[claude].api_key", Value: "sk-new-one"}}
	for name, c := range map[string]struct {
		e    setup.Edit
		is   error
		says string
	}{
		"does not load":    {setup.Edit{Sets: []setup.Set{set(t, "models[claude].vision", "perhaps")}, Secrets: key}, nil, "vision"},
		"another text":     {setup.Edit{Base: "0000", Secrets: key}, source.ErrChanged, ""},
		"no credential":    {setup.Edit{Secrets: []setup.Secret{{Path: "models[claude].model", Value: "x"}}}, setup.ErrSecret, "models[claude].model"},
		"an empty one":     {setup.Edit{Secrets: []setup.Secret{{Path: "models[claude].api_key", Value: " \n"}}}, setup.ErrSecret, "empty"},
		"no such place":    {setup.Edit{Sets: []setup.Set{set(t, "models[none].model", "x")}}, edit.ErrPath, ""},
		"the environment":  {setup.Edit{Sets: []setup.Set{set(t, "concurrency.per_model", "8")}, Secrets: key}, setup.ErrEnvironment, "PARLEY_CONCURRENCY_PER_MODEL"},
		"kept elsewhere":   {setup.Edit{Sets: []setup.Set{set(t, "models[claude].base_url", "http://127.0.0.1:9")}}, nil, "given for another address"},
		"a mask of naught": {setup.Edit{Sets: []setup.Set{set(t, "models[x]", `{name: x, model: x, api_key: "`+edit.Mask+`"}`)}}, setup.ErrSecret, ""},
	} {
		_, err := r.change(r.owner(), c.e)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "sk-new-one") {
			t.Errorf("%s: %v", name, err)
		}
		if r.text() != first || len(r.secrets()) > 0 || len(r.left()) > 0 || r.Current().Models[0].APIKey != "kept-in-the-text" {
			t.Errorf("%s: secrets %v, left %q, the text\n%s", name, r.secrets(), r.left(), r.text())
		}
	}
	if len(r.notes) > 0 {
		t.Errorf("noted %q", r.notes)
	}
	var kept *guard.ErrKept
	_, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "models[claude].base_url", "http://127.0.0.1:9")}, Secrets: key})
	if errors.As(err, &kept) || err != nil {
		t.Errorf("with a new key: %v", err)
	}
}

// A part that was well and fails by the change undoes it; what is new and fails is kept, and said.
func TestChangeThatBreaksAPartIsUndone(t *testing.T) {
	t.Parallel()
	r := newRig(t, first)
	r.look = func(c *configs.Config, p setup.Part) setup.State {
		for _, ch := range c.Channels {
			if p.Name == ch.Name && strings.HasPrefix(ch.Options.(*telegram).Token.Reveal(), "bad") {
				return setup.State{Failed: true, Settled: true, Why: "the token is refused"}
			}
		}
		return setup.State{Fine: true, Settled: true}
	}
	_, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "agents[assistant].name", "Ada")},
		Secrets: []setup.Secret{{Path: "channels[tg].token", Value: "bad:token"}}})
	var undone *setup.Undone
	if !errors.As(err, &undone) || undone.Part.String() != "channel tg" || undone.Why != "the token is refused" {
		t.Fatalf("%v", err)
	}
	if r.text() != first || r.Current().Agents[0].Name != "assistant" || len(r.secrets()) > 0 || len(r.left()) > 0 {
		t.Errorf("secrets %v, left %q, the text\n%s", r.secrets(), r.left(), r.text())
	}
	if want := []string{"config.changed", "config.undone channel tg"}; !slices.Equal(r.notes, want) {
		t.Errorf("noted %q", r.notes)
	}
	done, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "channels[two]", `{name: two, type: telegram}`)},
		Secrets: []setup.Secret{{Path: "channels[two].token", Value: "bad:new"}}})
	if err != nil || !slices.Equal(done.Notes, []string{"channel two: the token is refused."}) || len(r.Current().Channels) != 2 {
		t.Errorf("a new one: %+v, %v", done, err)
	}
	// it failed before: a change of it is not undone
	if _, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "channels[two].token", "bad:other")}}); err != nil {
		t.Error(err)
	}
	// the file is another by then: it is theirs
	r.At(func(step string) {
		if step == "judged" {
			r.save(strings.Replace(r.text(), "Kept by Ada", "Kept by Eve", 1))
		}
	})
	done, err = r.change(r.owner(), setup.Edit{Secrets: []setup.Secret{{Path: "channels[tg].token", Value: "bad:token"}}})
	if err != nil || len(done.Notes) != 1 || !strings.Contains(strings.Join(done.Notes, " "), "stays as it is") || !strings.Contains(r.text(), "Eve") || len(r.secrets()) != 2 {
		t.Errorf("%+v, %v", done, err)
	}
}

// The first file of all is undone by taking it away.
func TestUndoneFirstFileIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.look = func(c *configs.Config, p setup.Part) setup.State {
		bad := p.Kind == "store" && len(c.Models) > 0
		return setup.State{Fine: !bad, Failed: bad, Settled: true, Why: "it is full"}
	}
	_, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "models[m]", `{name: m, api: offline}`)}})
	var undone *setup.Undone
	if _, gone := os.Stat(r.path); !errors.As(err, &undone) || !errors.Is(gone, os.ErrNotExist) || len(r.Current().Models) > 0 {
		t.Errorf("%v; file %v; in force %+v", err, gone, r.Current().Models)
	}
	r.look = nil
	if _, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "models[m]", `{name: m, api: offline}`)}}); err != nil || len(r.Current().Models) != 1 {
		t.Errorf("%v, %+v", err, r.Current().Models)
	}
}

// Whatever step the power goes at, the next start finds one of the two texts whole, judges what was not judged, and leaves no
// credential that nothing names.
func TestPowerGoesAtEachStepOfAChange(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]struct{ good, bad bool }{ // whether the new text stays
		"noted": {false, false}, "kept": {false, false}, "pending": {false, false}, "applied": {true, false}, "judged": {true, false}, "undone": {true, false},
	} {
		for _, bad := range []bool{false, true} {
			t.Run(fmt.Sprint(step, " bad=", bad), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, first)
				r.look = func(c *configs.Config, p setup.Part) setup.State {
					if bad && p.Kind == "channel" && c.Channels[0].Options.(*telegram).Token == "9:new" {
						return setup.State{Failed: true, Settled: true, Why: "the token is refused"}
					}
					return setup.State{Fine: true, Settled: true}
				}
				r.At(func(at string) {
					if at == step {
						r.power()
					}
				})
				_, _ = r.change(r.owner(), setup.Edit{Secrets: []setup.Secret{{Path: "channels[tg].token", Value: "9:new"}}})
				if r.aside == "" { // a good change is not undone
					return
				}
				r.stop()
				r.cut()
				r.start()
				r.Resume(t.Context())
				stays := want.good && !bad
				token := "1:kept-too"
				if stays {
					token = "9:new"
				}
				if got := r.Current().Channels[0].Options.(*telegram).Token.Reveal(); got != token || (r.text() == first) == stays {
					t.Errorf("in force is %s, the text\n%s", got, r.text())
				}
				if kept := len(r.secrets()); (kept == 1) != stays || len(r.left()) > 0 {
					t.Errorf("%d credentials, left %q", kept, r.left())
				}
			})
		}
	}
}

// Forty changes of a commented file keep every comment and the order of what was there.
func TestFortyEditsKeepCommentsAndOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, "# The very top.\n"+first+"# After all.\n# The end.\n")
	for i := range 40 {
		e := setup.Edit{}
		switch i % 8 {
		case 0:
			e.Sets = []setup.Set{set(t, fmt.Sprintf("models[m%d]", i), fmt.Sprintf("{name: m%d, api: offline}", i))}
		case 1:
			e.Sets = []setup.Set{set(t, fmt.Sprintf("models[m%d].context_window", i-1), fmt.Sprint(9000+i))}
		case 2:
			e.Secrets = []setup.Secret{{Path: "channels[tg].token", Value: fmt.Sprint("7:", i, "token")}}
		case 3:
			e.Sets = []setup.Set{set(t, "people[ana].tz", "Europe/Berlin")}
		case 4:
			e.Sets = []setup.Set{set(t, "people[ana].tz", ""), set(t, fmt.Sprintf("people[p%d]", i), fmt.Sprintf("{id: p%d}", i))}
		case 5:
			e.Sets = []setup.Set{set(t, "agents[assistant].fallbacks", fmt.Sprintf("[m%d]", i-5))}
		case 6:
			e.Sets = []setup.Set{set(t, "sessions.queue.cap", fmt.Sprint(5+i))}
		case 7:
			e.Sets = []setup.Set{set(t, "agents[assistant].fallbacks", ""), set(t, fmt.Sprintf("models[m%d]", i-7), "")}
		}
		if _, err := r.change(r.owner(), e); err != nil {
			t.Fatalf("change %d: %v\n%s", i, err, r.text())
		}
	}
	at := -1
	for _, c := range []string{"# The very top.", "# Kept by Ada.", "name: claude", "# the good one", "id: assistant", "id: ana", "name: tg", "# of the bot", "# After all.", "# The end."} {
		next := strings.Index(r.text(), c)
		if next <= at {
			t.Errorf("%q is at %d, behind %d", c, next, at)
		}
		at = next
	}
	if len(r.secrets()) != 1 {
		t.Errorf("%d credentials are left", len(r.secrets()))
	}
}
