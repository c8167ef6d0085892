package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"parley/configs/edit"
	"parley/configs/source"
)

// secretsDir lies beside the configuration and holds a file for each credential that was given here.
const secretsDir = "secrets"

// maxSecret is the longest credential, in bytes: ${file:…} reads no more.
const maxSecret = 64<<10 - 1

// secretFile is a credential with the file that is to hold it, whose name nothing has had before.
type secretFile struct {
	name  string // relative to the configuration
	value string
}

func (f secretFile) reference() string { return "${file:" + f.name + "}" }

// ours are the names of such files: whatever else lies there is the operator's own.
var ours = regexp.MustCompile(`\$\{file:(secrets/[a-z0-9_-]+\.[a-z2-7]{12})\}`)

var unfit = regexp.MustCompile(`[^a-z0-9_]+`)

// newSecret finds a name for a credential's file.
func newSecret(s Secret) (secretFile, error) {
	value := strings.TrimSpace(s.Value) // it was pasted, or came from a file with a line end
	switch {
	case value == "":
		return secretFile{}, fmt.Errorf("%w: that of %s is empty", ErrSecret, s.Path)
	case len(value) > maxSecret:
		return secretFile{}, fmt.Errorf("%w: that of %s is longer than 64 KiB", ErrSecret, s.Path)
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return secretFile{}, fmt.Errorf("%w: that of %s is not a text", ErrSecret, s.Path)
	}
	path := strings.ToLower(s.Path)
	if _, rest, ok := strings.Cut(path, "["); ok { // models[claude].api_key: claude-api_key
		path = rest
	}
	name := strings.Trim(unfit.ReplaceAllString(path, "-"), "-")
	name = strings.Trim(name[:min(len(name), 60)], "-")
	if name == "" {
		name = "secret"
	}
	return secretFile{secretsDir + "/" + name + "." + strings.ToLower(rand.Text()[:12]), value}, nil
}

// keep writes the files, so that they last before anything names them.
func keep(config string, files []secretFile) error {
	if len(files) == 0 {
		return nil
	}
	dir := filepath.Join(filepath.Dir(config), secretsDir)
	err := os.MkdirAll(dir, 0o700)
	for _, f := range files {
		if err == nil {
			err = writeNew(filepath.Join(filepath.Dir(config), f.name), f.value+"\n")
		}
	}
	if err == nil {
		err = errors.Join(source.SyncDir(dir), source.SyncDir(filepath.Dir(config)))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", source.ErrUnwritable, err)
	}
	return nil
}

// writeNew writes a file that was not there, readable by its owner only.
func writeNew(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// references are our files that a text names.
func references(text []byte) (names []string) {
	for _, m := range ours.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// forget removes our files that a text does not name. One that is gone already is fine.
func forget(config string, names []string, text []byte) error {
	var errs []error
	for _, name := range names {
		if slices.Contains(references(text), name) || !ours.MatchString("${file:"+name+"}") {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(config), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sort parts what is set from the credentials in it: none is written into the text. What is masked stays what it is.
func (s *Setup) sort(e Edit, text []byte) ([]Set, []secretFile, error) {
	t := &sorter{keys: s.opt.Source.SecretKeys(), was: map[string]string{}}
	if list, err := edit.Scalars(text); err == nil {
		for _, one := range list {
			t.was[one.Path] = one.Value
		}
	}
	var sets []Set
	for _, set := range e.Sets {
		if set.Value != nil {
			set.Value = t.take(set.Path, set.Path[strings.LastIndexByte(set.Path, '.')+1:], set.Value)
		}
		sets = append(sets, set)
	}
	var files []secretFile
	for _, one := range append(t.found, e.Secrets...) {
		f, err := newSecret(one)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
		sets = append(sets, Set{Path: one.Path, Value: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: f.reference()}})
	}
	return sets, files, t.err
}

// sorter finds credentials in values.
type sorter struct {
	keys  []string
	was   map[string]string // values of the text by their place
	found []Secret
	err   error
}

// take is a value without the credentials in it, which it notes.
func (t *sorter) take(path, key string, v *yaml.Node) *yaml.Node {
	switch {
	case v.Kind == yaml.ScalarNode && v.Value == edit.Mask && slices.Contains(t.keys, key):
		if t.was[path] == "" {
			t.err = fmt.Errorf("%w: none is kept at %s", ErrSecret, path)
		}
		c := *v
		c.Value = t.was[path]
		return &c
	case v.Kind == yaml.ScalarNode && slices.Contains(t.keys, key) && edit.Written(v.Value):
		t.found = append(t.found, Secret{path, v.Value})
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "${file:}"}
	case v.Kind == yaml.MappingNode:
		c := *v
		c.Content = nil
		for i := 0; i+1 < len(v.Content); i += 2 {
			name := v.Content[i].Value
			c.Content = append(c.Content, v.Content[i], t.take(path+"."+name, name, v.Content[i+1]))
		}
		return &c
	case v.Kind == yaml.SequenceNode:
		c := *v
		c.Content = nil
		for i, item := range v.Content {
			c.Content = append(c.Content, t.take(path+"["+edit.ItemName(item, i)+"]", key, item))
		}
		return &c
	}
	return v
}
