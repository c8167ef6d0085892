package configs

import (
	_ "embed"
	"fmt"
	"reflect"
	"strings"
)

// Example is a commented file to start from.
//
//go:embed parley.example.yaml
var Example []byte

//go:embed docs.md
var docsHead string

// Docs is the reference of every key as Markdown, with the options of the networks in sections.
func Docs(sections []Section) []byte {
	w := docWriter{sections: sections}
	w.WriteString(docsHead)
	w.WriteString("\n## Keys at the top\n")
	w.keys("", fieldsOf(reflect.TypeFor[Config]()), false)
	for _, f := range fieldsOf(reflect.TypeFor[Config]()) {
		if hasKeys(f.typ) {
			w.section(f.name, f)
		}
	}
	return []byte(w.String())
}

type docWriter struct {
	strings.Builder
	sections []Section
}

// section writes one block and then, each under its own heading, the blocks inside it.
func (w *docWriter) section(path string, f field) {
	doc := about(path, f.tag.Get("doc"))
	path += suffix(f.typ)
	t := elem(f.typ)
	fmt.Fprintf(w, "\n## `%s`\n\n%s\n", path, doc)
	if keys := f.tag.Get("keys"); keys != "" {
		fmt.Fprintf(w, "Keys: `%s`.\n", strings.ReplaceAll(keys, "|", "`, `"))
	}
	w.keys(path, fieldsOf(t), true)
	if isChannel(t) {
		w.networks(path)
	}
	for _, inner := range fieldsOf(t) {
		if hasKeys(inner.typ) {
			w.section(path+"."+inner.name, inner)
		}
	}
}

func (w *docWriter) networks(path string) {
	for _, s := range w.sections {
		if own := s.own(); len(own) > 0 {
			fmt.Fprintf(w, "\n## `%s` of type `%s`\n\nBeside the keys above:\n", path, s.Type)
			w.keys(path, own, true)
		}
	}
}

// keys writes a table.
func (w *docWriter) keys(path string, fields []field, blocks bool) {
	w.WriteString("\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range fields {
		meaning := about(key(path, f.name), f.tag.Get("doc"))
		if hasKeys(f.typ) && blocks {
			meaning = "See below. " + meaning
		}
		if f.tag.Get("restart") != "" {
			meaning += " *A change waits for a restart.*"
		}
		if example, ok := f.tag.Lookup("example"); ok {
			meaning += " Example: " + code(example) + "."
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", f.name, cell(docType(f)), cell(docDefault(f)), cell(meaning))
	}
}

// docType says what may be written, with its limits.
func docType(f field) string {
	s := typeWord(f.typ)
	if list, ok := f.tag.Lookup("enum"); ok {
		words := strings.Split(strings.TrimPrefix(list, "|"), "|")
		s = "`" + strings.Join(words, "`, `") + "`"
		if f.typ.Kind() == reflect.Slice {
			s = "list of " + s
		}
	}
	low, high := f.tag.Get("min"), f.tag.Get("max")
	switch {
	case low != "" && high != "":
		s += ", " + low + " to " + high
	case low != "":
		s += ", at least " + low
	case high != "":
		s += ", at most " + high
	}
	if f.tag.Get("zero") != "" {
		s += ", or 0"
	}
	if most := f.tag.Get("maxitems"); most != "" {
		s += ", at most " + most
	}
	if isSecret(f.typ, f.tag) {
		s += ", secret"
	}
	return s
}

func typeWord(t reflect.Type) string {
	switch {
	case isDuration(t):
		return "duration"
	case isSize(t):
		return "size"
	case isText(t):
		return "text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Pointer:
		return typeWord(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "list"
		}
		return "list of " + typeWord(t.Elem()) + "s"
	case reflect.Map, reflect.Struct:
		return "mapping"
	}
	return "whole number"
}

func docDefault(f field) string {
	if text, ok := f.tag.Lookup("default"); ok {
		return code(text)
	}
	if f.tag.Get("required") == "true" {
		return "required"
	}
	if strings.Contains(f.tag.Get("doc"), "Default: ") {
		return "see there"
	}
	switch k := elem(f.typ).Kind(); {
	case f.typ.Kind() == reflect.Slice:
		return "`[]`"
	case k == reflect.Struct && !isScalar(elem(f.typ)):
		return ""
	case k == reflect.Bool:
		return "`false`"
	case isText(f.typ):
		return "empty"
	}
	return "`0`"
}

// hasKeys says whether the type has keys of its own.
func hasKeys(t reflect.Type) bool { return elem(t).Kind() == reflect.Struct && !isScalar(elem(t)) }

// elem is what a list, mapping or pointer holds.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func suffix(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "[]"
	case reflect.Map:
		return ".ROLE"
	}
	return ""
}

func code(text string) string { return "`" + text + "`" }

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
