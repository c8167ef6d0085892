package tools

import (
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"parley/workspace/lazy"
)

// Domain is a kind of call that keeps an owner of its own. All fields that are given must match; one is.
type Domain struct {
	Name     string
	Tools    []string // patterns of tool names
	Programs []string // run by exec, wherever in the line
	Hosts    []string // that a call names; *.name is any name below
	MCP      []string // servers
	Disabled bool     // handler deny: nobody is asked, nothing runs
}

// domainOf names the domain that owns a call. clash is another that does too: then nobody can approve it alone.
func (p *policy) domainOf(spec Spec, args json.RawMessage) (owner *Domain, clash string) {
	for i := range p.cfg.Domains {
		d := &p.cfg.Domains[i]
		if !p.owns(d, spec, args) {
			continue
		}
		if d.Disabled { // it denies, whoever else owns the call
			return d, ""
		}
		if owner == nil {
			owner = d
		} else if clash == "" {
			clash = d.Name
		}
	}
	return owner, clash
}

// owns errs towards yes: what cannot be read from the call is asked about.
func (p *policy) owns(d *Domain, spec Spec, args json.RawMessage) bool {
	if len(d.Tools)+len(d.MCP)+len(d.Programs)+len(d.Hosts) == 0 {
		return false
	}
	if len(d.Tools) > 0 && match(d.Tools, spec) == "" {
		return false
	}
	if len(d.MCP) > 0 && !slices.ContainsFunc(d.MCP, func(server string) bool { return strings.HasPrefix(spec.Name, "mcp_"+server+"_") }) {
		return false
	}
	if args == nil { // only whether the tool may be seen
		return len(d.Programs)+len(d.Hosts) == 0
	}
	line, isExec := commandOf(spec, args)
	said := read(line)
	if len(d.Programs) > 0 {
		names := slices.ContainsFunc(d.Programs, func(program string) bool { return said.names[path.Base(program)] })
		if !isExec || !names && !said.opaque {
			return false
		}
	}
	if len(d.Hosts) > 0 {
		computed := isExec && p.cfg.Network && said.opaque
		if !computed && !namesHost(d.Hosts, args) {
			return false
		}
	}
	return true
}

// commandOf is the line of a call of exec.
func commandOf(spec Spec, args json.RawMessage) (line string, ok bool) {
	if spec.Group != GroupExec {
		return "", false
	}
	var a map[string]json.RawMessage // unlike a struct it tells Command from command
	var text string
	if err := json.Unmarshal(args, &a); err != nil || len(a["command"]) == 0 || json.Unmarshal(a["command"], &text) != nil {
		return "", true // it will be refused; until then nothing is known of it
	}
	return text, true
}

var hostToken = lazy.Regexp(`[\pL\pN][\pL\pN.-]*`)

// namesHost looks for a host in every text of the arguments.
func namesHost(hosts []string, args json.RawMessage) bool {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return false
	}
	return anyText(v, func(text string) bool {
		if plain, err := url.PathUnescape(text); err == nil && plain != text && textNames(hosts, plain) {
			return true
		}
		return textNames(hosts, text)
	})
}

func textNames(hosts []string, text string) bool {
	for _, t := range hostToken().FindAllString(strings.ToLower(text), -1) {
		t = strings.Trim(t, ".-")
		for _, h := range hosts {
			h = strings.Trim(strings.ToLower(h), ".")
			if below, any := strings.CutPrefix(h, "*"); t == h || any && strings.HasSuffix(t, below) {
				return true
			}
		}
	}
	return false
}

// anyText says whether some text inside a JSON value, or a key of it, passes.
func anyText(v any, pass func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return pass(v)
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return anyText(x, pass) })
	case map[string]any:
		for k, x := range v {
			if pass(k) || anyText(x, pass) {
				return true
			}
		}
	}
	return false
}
