package workspace

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"
)

// Path is a path inside a work folder, as a model or a person wrote it. It can be named in a sentence, and opened by
// a Root; nothing else can read it, so that no code comes to join it to a folder of the host by itself.
type Path struct{ text string }

// At is a path that we made ourselves: a Root checks it like any other.
func At(p string) Path { return Path{p} }

// String is the path as it may be shown: cut and made visible.
func (p Path) String() string { return Line(p.text, shownPath) }

// IsZero says that none was written.
func (p Path) IsZero() bool { return p.text == "" }

// Base is the last element, as it may be shown.
func (p Path) Base() string { return Line(path.Base(p.text), maxElement) }

// Plain says that the path is a single name, without folders.
func (p Path) Plain() bool { return !strings.Contains(p.text, "/") }

// MarshalJSON writes the path as it was read.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal(p.text) }

// UnmarshalJSON takes text only. Whether it is a good path is the Root's to say.
func (p *Path) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' { // null too: else it would be taken for a path that is not there
		return &json.UnmarshalTypeError{Value: "something else", Type: reflect.TypeFor[string]()}
	}
	return json.Unmarshal(data, &p.text)
}
