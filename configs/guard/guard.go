// Package guard judges a change of the configuration by what it means: which keys differ, which of them want more than being
// signed in, and whether a credential that is kept would go to another address (E68, T28). It does nothing.
package guard

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"parley/configs"
	"parley/configs/edit"
	"parley/workspace/lazy"
)

// free are the keys that somebody may change who is merely signed in. Every other one reaches the host, widens what somebody
// may do, or makes something be lost: it wants more. [] stands for any item; what stands below a key is its own row.
var free = []string{
	"models[].name", "models[].api", "models[].base_url", "models[].api_key", "models[].model", "models[].context_window",
	"models[].max_output_tokens", "models[].vision",
	"transcription.model", "transcription.base_url", "transcription.api_key", "transcription.language",
	"agents[].id", "agents[].name", "agents[].default", "agents[].model", "agents[].fallbacks", "agents[].models", "agents[].roles",
	"agents[].max_steps",
	"channels[].name", "channels[].type", "channels[].stream", "channels[].app_token", "channels[].bot_token", "channels[].token",
	"people[].id", "people[].name", "people[].tz",
	"sessions.queue", "sessions.turn_timeout", "replies", "concurrency",
}

// Free says whether being signed in is enough to change a key.
func Free(path string) bool {
	plain := itemName().ReplaceAllString(path, "[]")
	return slices.ContainsFunc(free, func(f string) bool { return plain == f || strings.HasPrefix(plain, f+".") })
}

var itemName = lazy.Regexp(`\[[^\]]*\]`)

// Guarded are those of the keys that being signed in is not enough for.
func Guarded(keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), Free)
}

// Changed names every key that differs, those of items of lists by their name. What is added counts by how it differs from one
// that has nothing but its defaults; what went is a change as a whole.
func Changed(old, new *configs.Config) []string {
	was, items := map[string]configs.Leaf{}, map[string]bool{}
	for _, l := range old.Leaves() {
		was[l.Path] = l
	}
	var keys []string
	for _, l := range new.Leaves() {
		before, known := was[l.Path]
		if known && !reflect.DeepEqual(before.Value, l.Value) || !known && !l.Default {
			keys = append(keys, l.Path)
		}
		items[l.Item] = true
		delete(was, l.Path)
	}
	for _, l := range was {
		switch {
		case !items[l.Item]:
			keys = append(keys, l.Item)
		case !l.Default:
			keys = append(keys, l.Path)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// NewReferences are the places of a text where a ${…} stands that did not stand there before: it may read any variable or file
// of the gateway's, so that none is a free change, whatever the key. given are references of the gateway's own making.
func NewReferences(old, new []byte, given map[string]bool) ([]string, error) {
	before := map[string]string{}
	if list, err := edit.Scalars(old); err == nil { // what cannot be read holds nothing that is known
		for _, s := range list {
			before[s.Path] = s.Value
		}
	}
	list, err := edit.Scalars(new)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, s := range list {
		if strings.Contains(s.Value, "${") && before[s.Path] != s.Value && !given[s.Value] {
			keys = append(keys, s.Path)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// ErrKept says that a credential would go to an address that it was not given for.
type ErrKept struct{ Path string }

func (e *ErrKept) Error() string {
	return fmt.Sprintf("%s: the credential that is kept was given for another address; give it again", e.Path)
}

// sent is a credential with where it is sent.
type sent struct{ path, secret, address string }

// addresses are the keys that say where the credentials beside them are sent.
var addresses = []string{"base_url", "api_url", "url"}

// credentials are those that are set, with the address that stands beside each; none: the service's own.
func credentials(c *configs.Config) (list []sent) {
	values := map[string]string{}
	leaves := c.Leaves()
	for _, l := range leaves {
		if text := reflect.ValueOf(l.Value); text.Kind() == reflect.String {
			values[l.Path] = text.String()
		}
	}
	for _, l := range leaves {
		if !l.Secret || values[l.Path] == "" {
			continue
		}
		beside := l.Path[:max(0, strings.LastIndexByte(l.Path, '.'))]
		address := ""
		for _, name := range addresses {
			address += strings.TrimSuffix(values[beside+"."+name], "/")
		}
		if strings.HasPrefix(l.Path, "channels[") {
			address = values[beside+".type"] + " " + address
		}
		list = append(list, sent{l.Path, values[l.Path], address})
	}
	return list
}

// KeptElsewhere says whether a credential of the old configurations would be sent to an address that it was not sent to by then:
// nil or a *ErrKept. It compares what the credentials are, so that another reference to the same one is no way around.
func KeptElsewhere(new *configs.Config, old ...*configs.Config) error {
	var wrong []string
	for _, s := range credentials(new) {
		if maySend(s.secret, s.address, old...) != nil {
			wrong = append(wrong, s.path)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	sort.Strings(wrong)
	return &ErrKept{wrong[0]}
}

// maySend says whether a credential may be sent to an address: it is not one that is kept, or is kept for this address. Else it
// is a *ErrKept. The address is that of base_url, api_url or url; of a channel it begins with its type and a space.
func maySend(secret, address string, old ...*configs.Config) error {
	var kept *ErrKept
	for _, c := range old {
		for _, s := range credentials(c) {
			switch {
			case s.secret != secret:
			case s.address == strings.TrimSuffix(address, "/"):
				return nil
			default:
				kept = &ErrKept{s.path}
			}
		}
	}
	if kept == nil {
		return nil
	}
	return kept
}
