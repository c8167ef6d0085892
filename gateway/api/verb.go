package api

import (
	"net/http"
	"reflect"
	"slices"

	"parley/gateway/api/wire"
	"parley/gateway/control/all"
	"parley/gateway/spec"
)

// verbs are the endpoints of the verbs that are values.
type verbs struct{ base }

func (b verbs) routes() []route {
	var list []route
	for _, v := range all.Verbs() {
		s := v.Spec()
		if s.Path == "" {
			continue
		}
		rt := route{pattern: s.Route(), operation: operation{group: s.Group, summary: s.Help, good: one(s.Status, nil)}}
		rt.serve = func(w http.ResponseWriter, r *http.Request) error {
			out, err := v.Run(r.Context(), b.control.List(), b.call(r), func(in any) error { return fill(w, r, s, in) })
			switch {
			case err != nil:
				return err
			case s.Status == http.StatusNoContent:
				w.WriteHeader(s.Status)
			default:
				wire.Reply(w, s.Status, out)
			}
			return nil
		}
		if s.Status != http.StatusNoContent {
			rt.good[s.Status] = reflect.Zero(s.Out).Interface()
		}
		if s.Unkept {
			rt.traits |= loose
		}
		if s.Soon {
			rt.traits |= soon
		}
		list = append(list, rt)
	}
	return list
}

// fill sets the fields of in, a pointer to a verb's In, from a request: its body first, since no body may set the others. Where
// something is done, what is said twice is not guessed at.
func fill(w http.ResponseWriter, r *http.Request, s spec.Verb, in any) error {
	if !s.Safe() {
		body := in
		if !slices.ContainsFunc(s.Fields, func(f spec.Field) bool { return f.From == spec.InBody }) {
			body = &wire.NoBody{}
		}
		if err := wire.Decode(w, r, body); err != nil {
			return err
		}
	}
	query := r.URL.Query()
	for _, f := range s.Fields {
		text := query.Get(f.Name)
		switch {
		case f.From == spec.InPath:
			text = r.PathValue(f.Name)
		case f.From == spec.InBody:
			continue
		case len(query[f.Name]) > 1 && !s.Safe():
			return wire.Invalid(f.Name + " is given more than once.")
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
