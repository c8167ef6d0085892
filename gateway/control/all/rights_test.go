package all

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
)

// Each cell of docs/rights.md is that of the verb, and each verb that is a value has a row there.
func TestRightsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	k := control.New(control.Options{Verbs: Verbs()})
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 || strings.TrimSpace(cells[5]) != "no" { // what nobody may is asked of the kernel
			continue
		}
		name := strings.TrimSpace(cells[0])
		listed[name] = true
		for i, role := range []workspace.Role{workspace.Owner, workspace.Member, workspace.Guest} {
			if has, says := k.Row(name).Of(role).String(), strings.TrimSpace(cells[2+i]); has != says {
				t.Errorf("%s by %s: %q, the document says %q", name, role, has, says)
			}
		}
	}
	if len(listed) < 60 {
		t.Errorf("the document lists %d verbs", len(listed))
	}
	rows := map[string]any{}
	for _, v := range Verbs() {
		name, row := v.Right()
		if !listed[name] {
			t.Errorf("%s has no row in the document", name)
		}
		if was, ok := rows[name]; ok && was != row {
			t.Errorf("%s has two rows", name)
		}
		rows[name] = row
	}
}

// Every verb that is a value can be rendered: what its tags say is of a kind that surfaces know, each name in its path and its
// line is a field, and its help is an order.
func TestVerbsCanBeRendered(t *testing.T) {
	t.Parallel()
	routes, lines, tools := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, v := range Verbs() {
		s := v.Spec()
		if s.Help == "" || s.Help[0] < 'A' || s.Help[0] > 'Z' || strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: help %q", s.Name, s.Help)
		}
		if route := s.Method + " " + s.Path; s.Path == "" && s.Chat == "" && s.Name != "approve.button" || s.Path != "" && (routes[route] || !strings.HasPrefix(s.Path, "/v1/")) {
			t.Errorf("%s: route %q", s.Name, route)
		} else {
			routes[route] = true
		}
		if s.CLI != "" && lines[s.CLI] {
			t.Errorf("%s: line %q", s.Name, s.CLI)
		}
		lines[s.CLI] = true
		for line := range strings.SplitSeq(s.Chat, ",") {
			line = strings.TrimSpace(line)
			if line != "" && lines["/"+line] {
				t.Errorf("%s: in chat %q", s.Name, line)
			}
			lines["/"+line] = true
			i := strings.IndexAny(line, "<[")
			if i < 0 || s.Typed || len(s.Fields) == 1 {
				continue
			}
			words := strings.Fields(line[i:])
			last := strings.Trim(words[len(words)-1], "<>[]")
			if !slices.ContainsFunc(s.Fields, func(f spec.Field) bool { return f.Chat == last }) {
				t.Errorf("%s: in chat %q is for no field", s.Name, last)
			}
		}
		if s.MCP != "" && (tools[s.MCP] || !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(s.MCP)) {
			t.Errorf("%s: tool %q", s.Name, s.MCP)
		}
		tools[s.MCP] = true
		named := map[string]bool{}
		for _, f := range s.Fields {
			named[f.Name], named[f.Flag] = true, true
			if f.From == spec.InPath && !strings.Contains(s.Path, "{"+f.Name+"}") {
				t.Errorf("%s: %s is not in the path", s.Name, f.Name)
			}
			if f.From != spec.InPath && f.Help == "" {
				t.Errorf("%s: %s has no help", s.Name, f.Name)
			}
			gone := s.Method == http.MethodDelete // which has no body
			if f.From == spec.InBody && (s.Safe() || gone) || f.From == spec.InQuery && !s.Safe() && !gone {
				t.Errorf("%s: %s cannot be given by %s", s.Name, f.Name, s.Method)
			}
		}
		for _, name := range append(strings.FieldsFunc(s.Path, func(r rune) bool { return r == '{' || r == '}' || r == '/' }), strings.Fields(s.CLI)...) {
			if strings.Contains(s.Path, "{"+name+"}") && !named[name] {
				t.Errorf("%s: %s is not a field", s.Name, name)
			}
			if in := strings.Trim(name, "<>[]"); in != name && !named[in] {
				t.Errorf("%s: %s is not a field", s.Name, name)
			}
		}
	}
}
