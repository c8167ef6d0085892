package api

import (
	"net/http"
	"reflect"

	"parley/gateway/control"
)

// verbRoutes are the endpoints of the verbs that are values.
func verbRoutes() []route {
	var list []route
	for _, v := range control.Verbs() {
		s := v.Spec()
		list = append(list, route{s.Method + " " + s.Path, false, func(srv *server, w http.ResponseWriter, r *http.Request) error {
			out, err := v.Run(r.Context(), srv.opt.Control, srv.call(r), func(in any) error { return fill(w, r, s, in) })
			if err == nil {
				reply(w, http.StatusOK, out)
			}
			return err
		}})
	}
	return list
}

// fill sets the fields of in, a pointer to a verb's In, from a request: its body first, since no body may set the others.
func fill(w http.ResponseWriter, r *http.Request, s control.Spec, in any) error {
	if !s.Safe() {
		if err := decode(w, r, in); err != nil {
			return err
		}
	}
	query := r.URL.Query()
	for _, f := range s.Fields {
		text := ""
		switch f.From {
		case control.InPath:
			text = r.PathValue(f.Name)
		case control.InQuery:
			text = query.Get(f.Name)
		}
		if text == "" {
			continue
		}
		if err := f.Set(in, text); err != nil {
			return err
		}
	}
	return nil
}

// verbOperations are what openapi.json says of them beside their fields.
func verbOperations() map[string]operation {
	all := map[string]operation{}
	for _, v := range control.Verbs() {
		s := v.Spec()
		all[s.Method+" "+s.Path] = operation{group: s.Group, summary: s.Help, good: one(http.StatusOK, reflect.Zero(s.Out).Interface())}
	}
	return all
}
