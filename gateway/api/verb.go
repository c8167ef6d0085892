package api

import (
	"net/http"
	"reflect"

	"parley/gateway/control"
	"parley/gateway/spec"
)

// verbRoutes are the endpoints of the verbs that are values.
func verbRoutes() []route {
	var list []route
	for _, v := range control.Verbs() {
		s := v.Spec()
		if s.Path == "" {
			continue
		}
		list = append(list, route{s.Route(), false, func(srv *server, w http.ResponseWriter, r *http.Request) error {
			out, err := v.Run(r.Context(), srv.opt.Control, srv.call(r), func(in any) error { return fill(w, r, s, in) })
			switch {
			case err != nil:
				return err
			case s.Status == http.StatusNoContent:
				w.WriteHeader(s.Status)
			default:
				reply(w, s.Status, out)
			}
			return nil
		}})
	}
	return list
}

// fill sets the fields of in, a pointer to a verb's In, from a request: its body first, since no body may set the others.
func fill(w http.ResponseWriter, r *http.Request, s spec.Verb, in any) error {
	if !s.Safe() {
		if err := decode(w, r, in); err != nil {
			return err
		}
	}
	query := r.URL.Query()
	for _, f := range s.Fields {
		text := query.Get(f.Name)
		switch f.From {
		case spec.InPath:
			text = r.PathValue(f.Name)
		case spec.InBody:
			continue
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
		if s.Path == "" {
			continue
		}
		op := operation{group: s.Group, summary: s.Help, good: one(s.Status, nil)}
		if s.Status != http.StatusNoContent {
			op.good[s.Status] = reflect.Zero(s.Out).Interface()
		}
		all[s.Route()] = op
	}
	return all
}
