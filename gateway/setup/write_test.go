package setup_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/configs/edit"
	"parley/configs/guard"
	"parley/gateway/setup"
)

const withSecrets = `# The key was kept-in-a-list once.
models:
  - name: claude
    api: anthropic
    api_key: "kept-in-quotes" # mine
    model: c
  - {name: gpt, api_key: 'kept-in-a-list', model: g}
  - name: far
    model: f
    api_key: ${FAR_KEY:-kept-as-a-fallback}
  - {name: near, base_url: "http://127.0.0.1:11434/v1", model: l}
channels:
  - name: tg
    type: telegram
    token: |-
      1:kept-in-a-block
people: [{id: ana, role: owner}]
`

func (r *rig) write(who setup.Asker, base, text string) (setup.Applied, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	return r.Write(ctx, who, base, []byte(text))
}

// What is shown holds no credential, and comes back as it was byte by byte, with the changes.
func TestShownTextComesBackWithItsCredentials(t *testing.T) {
	t.Parallel()
	for _, ends := range []string{"\n", "\r\n"} {
		text := strings.ReplaceAll(withSecrets, "\n", ends)
		r := newRig(t, text)
		v, err := r.Show()
		if err != nil || v.Hidden != nil || len(v.Problems) > 0 || len(v.Masked) != 4 {
			t.Fatalf("%+v, %v", v, err)
		}
		if strings.Contains(string(v.Text), "kept-") || strings.Count(string(v.Text), edit.Mask) != 5 {
			t.Fatalf("shown is\n%s", v.Text)
		}
		changed := strings.Replace(string(v.Text), "model: g}", "model: g, vision: yes}", 1)
		changed = strings.Replace(changed, "name: claude", "name: claude   # the first", 1)
		done, err := r.write(r.borrowed(), v.Revision, changed)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(strings.Replace(text, "model: g}", "model: g, vision: yes}", 1), "name: claude", "name: claude   # the first", 1)
		if r.text() != want || len(done.Changed) != 1 || done.Changed[0] != "models[gpt].vision" {
			t.Errorf("changed %q, the text is\n%q\nwant\n%q", done.Changed, r.text(), want)
		}
		if _, err := r.write(r.owner(), done.Revision, string(v.Text)+"# "+edit.Mask+"\n"); err == nil {
			t.Error("a mask of nothing was written")
		}
	}
}

// A mask that is carried to another place, or whose model goes to another address, brings no credential there.
func TestMaskIsNoWayToMoveACredential(t *testing.T) {
	t.Parallel()
	r := newRig(t, withSecrets)
	v, err := r.Show()
	if err != nil {
		t.Fatal(err)
	}
	shown := string(v.Text)
	for name, text := range map[string]string{
		"to another model":   strings.Replace(shown, "name: near,", "name: near, api_key: "+edit.Mask+",", 1),
		"to another key":     strings.Replace(shown, "model: l}", "model: "+edit.Mask+"}", 1),
		"to another address": strings.Replace(shown, "    api: anthropic\n", "    api: anthropic\n    base_url: \"http://127.0.0.1:9\"\n", 1),
		"by another name":    strings.Replace(strings.Replace(shown, "name: gpt", "name: x", 1), "name: near", "name: gpt", 1),
	} {
		_, err := r.write(r.owner(), v.Revision, text)
		var mask *edit.ErrMask
		var kept *guard.ErrKept
		if !errors.As(err, &mask) && !errors.As(err, &kept) || r.text() != withSecrets {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that is no YAML is shown without credentials too, and can be mended.
func TestBrokenFileIsShownAndMended(t *testing.T) {
	t.Parallel()
	r := newRig(t, withSecrets)
	broken := strings.Replace(withSecrets, "models:", "models: [", 1)
	r.save(broken)
	v, err := r.Show()
	if err != nil || v.Hidden != nil || len(v.Problems) != 1 || strings.Contains(string(v.Text), "kept-") {
		t.Fatalf("%v, %+v\n%s", err, v.Problems, v.Text)
	}
	if _, err := r.write(r.owner(), v.Revision, strings.Replace(string(v.Text), "models: [", "models:", 1)); err != nil {
		t.Fatal(err)
	}
	if r.text() != withSecrets {
		t.Errorf("the text is\n%s", r.text())
	}
}

// FuzzShow: whatever the text, what is shown holds no credential that a key names, and comes back byte by byte or not at all.
func FuzzShow(f *testing.F) {
	for _, text := range []string{withSecrets, first, "models: [\n  api_key: kept-0123456789", "a: &x kept-0123456789\napi_key: *x\n", "api_key: >\n  kept-0123456789\n  kept-0123456789\n",
		"\"api_key\": kept-0123456789, token: x", "- token: kept-0123456789\n  secret: [kept-0123456789]\n", "api_key:\n  kept-0123456789\n"} {
		f.Add(text)
	}
	m := edit.Masks{Keys: []string{"api_key", "secret", "token"}}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 || strings.Contains(text, edit.Mask) {
			return
		}
		v, err := m.Show([]byte(text))
		if err != nil {
			return
		}
		back, err := m.Restore([]byte(text), v.Text)
		list, bad := edit.Scalars(v.Text)
		if err == nil && bad == nil && string(back) != text {
			t.Errorf("shown\n%q\ncame back as\n%q\nfrom\n%q", v.Text, back, text)
		}
		for _, s := range list {
			if (s.Key == "api_key" || s.Key == "token" || s.Key == "secret") && strings.Contains(s.Value, "kept-0123456789") {
				t.Errorf("%s is shown in\n%q", s.Path, v.Text)
			}
		}
	})
}
