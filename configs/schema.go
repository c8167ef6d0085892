package configs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// SchemaID names the JSON Schema.
const SchemaID = "urn:parley:config"

// Patterns of texts in the schema. expansion is what may stand in place of a word.
const (
	durationPattern  = `^(0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+|[0-9]+[dw]|)$`
	sizePattern      = `^[0-9]+(B|[kMGT]B|[KMGT]iB)$`
	expansionPattern = `\$\{.+\}`
)

// object is a JSON object; its keys are sorted when it is written.
type object = map[string]any

// Schema is the JSON Schema (draft 2020-12) of the file, with the options of the networks in sections, indented. Editors
// complete and check with it; Load checks more.
func Schema(sections []Section) ([]byte, error) {
	root := structSchema("", reflect.TypeFor[Config](), sections)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "Parley configuration"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(out, '\n'), nil
}

func structSchema(path string, t reflect.Type, sections []Section) object {
	if isChannel(t) {
		return channelSchema(path, sections)
	}
	s := object{"type": "object", "additionalProperties": false}
	properties(path, s, fieldsOf(t), sections)
	return s
}

// properties adds keys to s.
func properties(path string, s object, fields []field, sections []Section) {
	props, required := object{}, []string{}
	for _, f := range fields {
		props[f.name] = fieldSchema(key(path, f.name), f, sections)
		if f.tag.Get("required") == "true" {
			required = append(required, f.name)
		}
	}
	s["properties"] = props
	if len(required) > 0 {
		s["required"] = required
	}
}

// channelSchema joins the common keys and, by type, those of its adapter.
func channelSchema(path string, sections []Section) object {
	s := object{"type": "object", "unevaluatedProperties": false}
	properties(path, s, fieldsOf(reflect.TypeFor[Channel]()), sections)
	types, choices := []string{}, []any{}
	for _, section := range sections {
		types = append(types, section.Type)
		then := object{}
		properties(path, then, section.own(), nil)
		is := object{"properties": object{"type": object{"const": section.Type}}, "required": []string{"type"}}
		choices = append(choices, object{"if": is, "then": then})
	}
	network := s["properties"].(object)["type"].(object)
	network["enum"] = types
	if len(choices) > 0 {
		s["allOf"] = choices
	}
	return s
}

func fieldSchema(path string, f field, sections []Section) object {
	s := valueSchema(path+suffix(f.typ), f.typ, f.tag, sections)
	if doc := about(path, f.tag.Get("doc")); doc != "" {
		s["description"] = doc
	}
	if text, ok := f.tag.Lookup("default"); ok {
		s["default"] = tagValue(text, f.typ)
	}
	if text, ok := f.tag.Lookup("example"); ok {
		s["examples"] = []any{tagValue(text, f.typ)}
	}
	return s
}

// tagValue is the value of a default or example tag.
func tagValue(text string, t reflect.Type) any {
	var v any
	if node := parseTag(text, t); node != nil && node.Decode(&v) == nil {
		if isDuration(t) || isSize(t) {
			return text
		}
		return v
	}
	return text
}

func valueSchema(path string, t reflect.Type, tag reflect.StructTag, sections []Section) object {
	switch {
	case isDuration(t): // 0 may stand without quotes
		return object{"anyOf": []any{object{"type": "string", "pattern": durationPattern}, object{"const": 0}}}
	case isSize(t):
		return object{"type": "string", "pattern": sizePattern}
	case isText(t):
		return textSchema(t, tag)
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return edges(object{"type": "number"}, tag)
	case reflect.Pointer:
		return valueSchema(path, t.Elem(), tag, sections)
	case reflect.Struct:
		return structSchema(path, t, sections)
	case reflect.Slice:
		s := object{"type": "array", "items": valueSchema(path, t.Elem(), tag, sections)}
		if most, err := strconv.Atoi(tag.Get("maxitems")); err == nil {
			s["maxItems"] = most
		}
		return s
	case reflect.Map:
		s := object{"type": "object", "additionalProperties": valueSchema(path, t.Elem(), tag, sections)}
		if keys := tag.Get("keys"); keys != "" {
			s["propertyNames"] = object{"enum": strings.Split(keys, "|")}
		}
		return s
	}
	return edges(object{"type": "integer"}, tag)
}

// textSchema: an enumeration, or a variable that stands for one of its words.
func textSchema(t reflect.Type, tag reflect.StructTag) object {
	s := object{"type": "string"}
	if list, ok := tag.Lookup("enum"); ok {
		s["anyOf"] = []any{object{"enum": strings.Split(list, "|")}, object{"pattern": expansionPattern}}
	}
	if tag.Get("required") == "true" {
		s["minLength"] = 1
	}
	if isSecret(t, tag) {
		s["writeOnly"] = true
	}
	return s
}

func edges(s object, tag reflect.StructTag) object {
	for word, name := range map[string]string{"minimum": "min", "maximum": "max"} {
		if n, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
			s[word] = n
		}
	}
	return s
}
