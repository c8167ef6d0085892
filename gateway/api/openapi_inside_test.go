package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"parley/agentloop/llm/provider"
	"parley/channels"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/approval"
	"parley/gateway/control/config"
	"parley/gateway/control/conversation"
	"parley/gateway/control/file"
	"parley/gateway/control/operator"
	"parley/gateway/control/outbound"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/gateway/control/view"
	"parley/gateway/spec"
	"parley/workspace"
)

var update = flag.Bool("update", false, "write openapi.json and the page's types again")

// named are the types that the document calls by a name.
var named = map[string]any{
	"Problem": wire.Problem{}, "Usage": control.Usage{}, "Accepted": accepted{}, "MessageRequest": messageRequest{}, "Run": run.Run{}, "RunItem": run.Item{}, "RunDetail": run.Detail{},
	"RunMessage": run.Message{}, "RunDecision": run.Decision{}, "RunRoute": run.Route{}, "RunStep": run.Step{}, "RunMoment": run.Moment{}, "LogLine": view.LogLine{}, "Stopped": run.Stopped{},
	"Session": session.Item{}, "WorkFiles": file.Filled{}, "WorkFile": file.Item{}, "FilesRemoved": file.Removed{}, "Generation": session.Generation{},
	"Event": view.Event{}, "Agent": control.Agent{}, "Command": Command{}, "Channel": operator.Channel{}, "Tested": operator.Tested{}, "Login": operator.Login{}, "Finding": channels.Finding{}, "Route": operator.RouteRow{}, "Match": operator.Match{},
	"Explained": operator.Explained{}, "PolicyExplained": operator.PolicyExplained{}, "PolicyTool": operator.PolicyTool{}, "PolicyLayer": workspace.Layer{}, "PolicyDecision": run.PolicyDecision{}, "Undelivered": outbound.Undelivered{}, "Tried": operator.Tried{}, "UsageItem": operator.UsageItem{}, "UsageSum": operator.UsageSum{}, "LogItem": operator.LogItem{}, "AuditItem": operator.AuditItem{}, "AuditCheck": operator.AuditCheck{}, "AuditHead": operator.AuditHead{}, "AuditFault": operator.AuditFault{}, "Config": operator.Config{}, "ConfigFile": control.ConfigFile{},
	"Approval": approval.Item{}, "Grant": approval.Grant{}, "Danger": approval.Danger{}, "Decision": decisionRequest{}, "StoppedAll": run.StoppedAll{}, "Paused": run.Paused{}, "Permission": view.Permission{}, "Hold": view.Hold{},
	"PersonItem": person.Item{}, "Account": person.Account{}, "Pairing": person.Pairing{}, "CodeRequest": codeRequest{}, "Code": codeView{},
	"Person": person.Caller{}, "Me": person.Hello{}, "Status": conversation.StatusItem{}, "Model": conversation.Model{}, "ModelsView": conversation.ModelView{}, "ModelChoice": conversation.ModelChoice{}, "Done": control.Done{}, "Item": view.Item{}, "Trouble": view.Trouble{}, "Part": view.Part{},
	"Provider": provider.Provider{}, "ModelTry": operator.TryOut{}, "ModelTrouble": provider.Trouble{}, "ServedModel": provider.Model{}, "ChannelKind": operator.Kind{}, "ChannelField": channels.SetupField{}, "ChannelLink": channels.Link{},
	"ConfigText": config.File{}, "ConfigProblem": config.Problem{}, "Checked": config.Checked{}, "Applied": config.Applied{},
	"File": fileView{}, "FileRequest": fileRequest{}, "SessionData": view.SessionData{}, "ItemData": view.ItemData{}, "Delta": view.Delta{}, "Asked": view.AskedData{}, "Output": view.OutputData{}, "Failing": run.Failing{}, "Retried": conversation.Retried{}, "EndData": view.EndData{}, "ErrorData": view.ErrorData{},
}

// parameters of queries.
var parameters = map[string]*jsonschema.Schema{
	"limit": number0("how many at most", 1, 500), "after": text("where to go on: next of the page before"), "offset": number0("line to begin with, counted from 0", 0, 1<<53),
	"before":     number0("only events before this number, the newest of them", 0, 1<<53),
	"session":    text("only of this session, by key"),
	"approvals":  {Type: "string", Enum: []any{"pending", "approved", "consumed", "denied", "expired", "cancelled", "unknown"}, Description: "only in this state"},
	"session_id": text("id of a generation; the newest when left out"),
	"step":       number0("the step that is known; with it the answer waits for a later one", 0, 1<<31),
	"name":       text("what to call the file"),
	"level":      {Type: "string", Enum: []any{"debug", "info", "warn", "error"}, Description: "least loudness"},
	"path":       text("file or folder, relative to the work folder"), "folder": {Type: "string", Enum: []any{"true", "false"}, Description: "true: a folder with all that is in it; the path . is then everything"},
	"inside": text("only what is in this folder, relative to the work folder"),
}

func text(what string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: what}
}

func number0(what string, least, most float64) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &most, Description: what}
}

// The document is what the endpoints, their operations and the types of their handlers make; the page's types are what
// the document makes. What changes one of them changes these files, by -update.
func TestOpenAPIIsWhatTheHandlersSpeak(t *testing.T) {
	doc := describe(t)
	body, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "openapi.json", append(body, '\n'))
	golden(t, "../../channels/webchat/ui/src/api/types.gen.ts", typescript(doc))
}

func golden(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is stale (%v): run go test ./gateway/api -run OpenAPI -update", name, err)
	}
}

type object = map[string]any

type documentView struct {
	OpenAPI    string            `json:"openapi"`
	Info       object            `json:"info"`
	Security   []object          `json:"security"`
	Paths      map[string]object `json:"paths"`
	Components struct {
		Security object                        `json:"securitySchemes"`
		Schemas  map[string]*jsonschema.Schema `json:"schemas"`
	} `json:"components"`
}

func describe(t *testing.T) documentView {
	t.Helper()
	d := documentView{OpenAPI: "3.1.0", Paths: map[string]object{},
		Info:     object{"title": "Parley", "version": "1", "summary": "The gateway's HTTP API", "description": "docs/api.md says what it means, with examples. Errors are RFC 9457 problems."},
		Security: []object{{"token": []string{}}, {"page": []string{}}}}
	d.Components.Security = object{"token": object{"type": "http", "scheme": "bearer"}, "page": object{"type": "apiKey", "in": "cookie", "name": "parley"}}
	d.Components.Schemas = map[string]*jsonschema.Schema{}
	types := newTypes(t)
	for name, v := range named {
		s := types.of(reflect.TypeOf(v), true)
		s.Description = types.docs[documented(reflect.TypeOf(v))]
		d.Components.Schemas[name] = s
	}
	data := &jsonschema.Schema{Description: "by type; of turn.started it is empty"}
	for _, v := range []any{view.ItemData{}, view.Delta{}, view.EndData{}, view.ErrorData{}, view.SessionData{}} {
		data.AnyOf = append(data.AnyOf, types.of(reflect.TypeOf(v), false))
	}
	data.AnyOf = append(data.AnyOf, types.of(reflect.TypeFor[struct{}](), true))
	d.Components.Schemas["Event"].Properties["data"] = data
	d.Components.Schemas["Problem"].Properties["approval"].Ref = "#/components/schemas/Approval"
	for _, rt := range everyRoute() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		if d.Paths[path] == nil {
			d.Paths[path] = object{}
		}
		d.Paths[path][strings.ToLower(method)] = operationView(rt, rt.operation, types)
	}
	return d
}

func operationView(rt route, op operation, types *types) object {
	method, path, _ := strings.Cut(rt.pattern, " ")
	v := object{"tags": []string{op.group}, "summary": op.summary, "operationId": operationID(method, path)}
	var params []object
	for _, m := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, name := range strings.Fields(op.query) {
		name, alias, other := strings.Cut(name, "=")
		if !other {
			alias = name
		}
		s, known := parameters[alias]
		if !known {
			types.t.Errorf("%s: nobody knows the parameter %s", rt.pattern, name)
			continue
		}
		plain := *s
		plain.Description = ""
		params = append(params, object{"name": name, "in": "query", "description": s.Description, "schema": &plain})
	}
	fields := fieldsOf(rt.pattern)
	for _, f := range fields {
		if f.From == spec.InQuery {
			param := object{"name": f.Name, "in": "query", "description": f.Plain(), "schema": fieldSchema(f)}
			if f.Needed {
				param["required"] = true
			}
			params = append(params, param)
		}
	}
	if !safe(method) && !rt.traits.has(loose) {
		most := 200
		params = append(params, object{"name": "Idempotency-Key", "in": "header", "description": "a repeat with the same key gives the first answer again", "schema": &jsonschema.Schema{Type: "string", MaxLength: &most}})
	}
	if len(params) > 0 {
		v["parameters"] = params
	}
	binary := object{"schema": &jsonschema.Schema{Type: "string", Format: "binary"}}
	switch op.body {
	case nil, wire.NoBody{}:
	case rawBody{}:
		v["requestBody"] = object{"required": true, "content": object{anyMedia: binary}}
	default:
		v["requestBody"] = object{"required": types.needed(op.body), "content": object{"application/json": object{"schema": types.of(reflect.TypeOf(op.body), false)}}}
	}
	if body := bodySchema(fields); body != nil {
		v["requestBody"] = object{"required": len(body.Required) > 0, "content": object{"application/json": object{"schema": body}}}
	}
	answers := object{"default": object{"description": "What went wrong", "content": object{"application/problem+json": object{"schema": types.of(reflect.TypeFor[wire.Problem](), false)}}}}
	for status, reply := range op.good {
		answer := object{"description": map[int]string{101: "The line is open", 200: "Done", 201: "Made", 202: "Taken", 204: "Done", 206: "A piece of it"}[status]}
		if reply != nil {
			media := op.media
			schema := types.of(reflect.TypeOf(reply), false)
			switch {
			case media == anyMedia:
				schema = &jsonschema.Schema{Type: "string", Format: "binary"}
			case media == "":
				media = "application/json"
			case media == sseMedia: // each event's data is one of these
				schema = &jsonschema.Schema{Type: "string", Description: "Server-sent events; data is " + strings.TrimPrefix(schema.Ref, "#/components/schemas/") + "."}
			}
			answer["content"] = object{media: object{"schema": schema}}
		}
		answers[fmt.Sprint(status)] = answer
	}
	v["responses"] = answers
	if rt.traits.has(open) {
		v["security"] = []object{}
	}
	return v
}

// fieldsOf are those of the verb behind a route; nil: no verb's value is.
func fieldsOf(pattern string) []spec.Field {
	for _, v := range all.Verbs() {
		if s := v.Spec(); s.Method+" "+s.Path == pattern {
			return s.Fields
		}
	}
	return nil
}

// bodySchema is the object that a verb's body is; nil: it has none.
func bodySchema(fields []spec.Field) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, f := range fields {
		if f.From != spec.InBody {
			continue
		}
		one := fieldSchema(f)
		one.Description = f.Plain()
		s.Properties[f.Name] = one
		if f.Needed {
			s.Required = append(s.Required, f.Name)
		}
	}
	if len(s.Properties) == 0 {
		return nil
	}
	return s
}

func fieldSchema(f spec.Field) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Int64: "integer", reflect.Bool: "boolean"}[f.Type.Kind()], Format: f.Format}
	if f.Type == reflect.TypeFor[[]string]() {
		s.Type, s.Items = "array", &jsonschema.Schema{Type: "string"}
	}
	for _, c := range f.Choices {
		s.Enum = append(s.Enum, c)
	}
	if f.Default != "" {
		s.Default = json.RawMessage(f.Default)
		if s.Type == "string" {
			s.Default = fmt.Appendf(nil, "%q", f.Default)
		}
	}
	for bound, of := range map[**float64]*int{&s.Minimum: f.Min, &s.Maximum: f.Max} {
		if of != nil {
			n := float64(*of)
			*bound = &n
		}
	}
	return s
}

// operationID is such as getRunsIdLog.
func operationID(method, path string) string {
	id := strings.ToLower(method)
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(strings.TrimPrefix(path, "/v1"), -1) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

// types makes schemas of Go types.
type types struct {
	t     *testing.T
	names map[reflect.Type]string
	refs  map[reflect.Type]*jsonschema.Schema
	docs  map[string]string // what stands over a type, and beside a field: "type.field"
}

func newTypes(t *testing.T) *types {
	ts := &types{t: t, names: map[reflect.Type]string{}, refs: map[reflect.Type]*jsonschema.Schema{}, docs: comments(t,
		"../../channels", ".", "../control/view", "wire", "stream", "../transport", "../control", "../control/approval", "../control/conversation", "../control/file", "../control/operator",
		"../control/outbound", "../control/person", "../control/run", "../control/session")}
	for name, v := range named {
		ts.names[reflect.TypeOf(v)] = name
		ts.refs[reflect.TypeOf(v)] = &jsonschema.Schema{Ref: "#/components/schemas/" + name}
	}
	ts.refs[reflect.TypeFor[json.RawMessage]()] = &jsonschema.Schema{}
	return ts
}

// of is the schema of a type: a reference when it has a name, unless whole wants all of it.
func (ts *types) of(typ reflect.Type, whole bool) *jsonschema.Schema {
	ts.t.Helper()
	if ref := ts.refs[typ]; ref != nil && !whole {
		return ref
	}
	refs := maps.Clone(ts.refs)
	delete(refs, typ)
	if typ.Kind() == reflect.Struct {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Anonymous {
				delete(refs, f.Type)
			}
		}
	}
	s, err := jsonschema.ForType(typ, &jsonschema.ForOptions{TypeSchemas: refs})
	if err != nil {
		ts.t.Fatalf("%v: %v", typ, err)
	}
	ts.tidy(s, typ)
	return s
}

// needed says whether a body must be sent.
func (ts *types) needed(v any) bool { return len(ts.of(reflect.TypeOf(v), true).Required) > 0 }

// tidy says what the library cannot know: our lists are never null, times have a format, and comments.
func (ts *types) tidy(s *jsonschema.Schema, typ reflect.Type) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case slices.Contains(s.Types, "array"):
		s.Types, s.Type = nil, "array"
	case typ.String() == "time.Time":
		s.Format = "date-time"
	}
	if s.Items != nil {
		ts.tidy(s.Items, typ.Elem())
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		switch {
		case p.Ref != "" && f.Type.Kind() == reflect.Pointer && strings.Contains(options, "omitempty"):
			p.Type, p.Types = "", nil
		case p.Ref != "" && f.Type.Kind() == reflect.Pointer:
			p.AnyOf, p.Ref, p.Type, p.Types = []*jsonschema.Schema{{Ref: p.Ref}, {Type: "null"}}, "", "", nil
		case p.Ref == "":
			ts.tidy(p, f.Type)
			if strings.Contains(options, "omitempty") && f.Type.Kind() == reflect.Pointer && len(p.Types) == 2 { // left out, never null
				p.Type, p.Types = p.Types[1], nil
			}
		}
		if doc := ts.docs[owner(typ, f)+"."+f.Name]; doc != "" {
			c := *p
			c.Description = doc
			s.Properties[name] = &c
		}
	}
}

// documented is what comments calls a type: its package's folder and its name.
func documented(typ reflect.Type) string { return path.Base(typ.PkgPath()) + "." + typ.Name() }

// owner is the struct in which a field stands, also when it is embedded, as comments calls it.
func owner(typ reflect.Type, f reflect.StructField) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		typ = typ.Field(i).Type
	}
	return documented(typ)
}

// comments are what the sources say of types and fields.
func comments(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, dir := range dirs {
		pkg := path.Base(dir) + "."
		if dir == "." {
			pkg = "api."
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				gen, ok := d.(*ast.GenDecl)
				if !ok || gen.Tok != token.TYPE {
					continue
				}
				for _, spec := range gen.Specs {
					ts := spec.(*ast.TypeSpec)
					body, ok := ts.Type.(*ast.StructType)
					if !ok {
						continue
					}
					if _, what, found := strings.Cut(oneLine(gen.Doc.Text()), ts.Name.Name+" is "); found {
						docs[pkg+ts.Name.Name] = strings.ToUpper(what[:1]) + what[1:]
					}
					for _, field := range body.Fields.List {
						for _, name := range field.Names {
							docs[pkg+ts.Name.Name+"."+name.Name] = oneLine(field.Comment.Text() + field.Doc.Text())
						}
					}
				}
			}
		}
	}
	return docs
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// typescript writes the named types of the document for the page.
func typescript(d documentView) []byte {
	var b strings.Builder
	b.WriteString("// Made from gateway/api/openapi.json by: go test ./gateway/api -run OpenAPI -update\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		fmt.Fprintf(&b, "\nexport type %s = %s\n", name, typeOf(d.Components.Schemas[name], ""))
	}
	return []byte(b.String())
}

func typeOf(s *jsonschema.Schema, indent string) string {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/components/schemas/")
	case len(s.AnyOf) > 0:
		var all []string
		for _, one := range s.AnyOf {
			all = append(all, typeOf(one, indent))
		}
		return strings.Join(all, " | ")
	case len(s.Types) > 0:
		var all []string
		for _, one := range s.Types {
			c := *s
			c.Types, c.Type = nil, one
			all = append(all, typeOf(&c, indent))
		}
		slices.Reverse(all) // null comes last
		return strings.Join(all, " | ")
	}
	switch s.Type {
	case "string", "boolean", "null":
		return s.Type
	case "integer", "number":
		return "number"
	case "array":
		item := typeOf(s.Items, indent)
		if strings.Contains(item, " ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "object":
		if len(s.Properties) == 0 && s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
			return "Record<string, " + typeOf(s.AdditionalProperties, indent) + ">"
		}
		if len(s.Properties) == 0 {
			return "Record<string, never>"
		}
		var b strings.Builder
		b.WriteString("{\n")
		for _, name := range s.PropertyOrder {
			p := s.Properties[name]
			if p == nil {
				continue
			}
			if p.Description != "" {
				fmt.Fprintf(&b, "%s  /** %s */\n", indent, p.Description)
			}
			mark := "?"
			if slices.Contains(s.Required, name) {
				mark = ""
			}
			fmt.Fprintf(&b, "%s  %s%s: %s\n", indent, name, mark, typeOf(p, indent+"  "))
		}
		return b.String() + indent + "}"
	}
	return "unknown"
}
