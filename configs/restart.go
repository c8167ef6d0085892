package configs

import (
	"path/filepath"
	"reflect"
	"slices"
)

// Running is what a loaded configuration means to a process that runs with another: the loaded one, in which the keys that
// wait for a restart have the values that the process runs with.
func Running(now, loaded *Config) *Config {
	c := *loaded
	keep(reflect.ValueOf(now).Elem(), reflect.ValueOf(&c).Elem(), "")
	for i, a := range c.Agents { // of a new agent, whose folder follows from data_dir
		if a.Workspace == filepath.Join(loaded.DataDir, "agents", a.ID) && !slices.ContainsFunc(now.Agents, func(old Agent) bool { return old.ID == a.ID }) {
			c.Agents[i].Workspace = filepath.Join(c.DataDir, "agents", a.ID)
		}
	}
	return &c
}

// keep gives b, and the items of its lists that a has too, a's values of the keys that wait for a restart.
func keep(a, b reflect.Value, restart string) {
	switch {
	case restart == "true":
		b.Set(a)
	case a.Kind() == reflect.Struct && !isScalar(a.Type()):
		for _, f := range fieldsOf(a.Type()) {
			keep(a.FieldByIndex(f.index), b.FieldByIndex(f.index), f.tag.Get("restart"))
		}
	case a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Struct && b.Len() > 0:
		fresh := reflect.MakeSlice(b.Type(), b.Len(), b.Len())
		reflect.Copy(fresh, b)
		b.Set(fresh)
		olds := byName(a)
		for name, item := range byName(b) {
			if old, ok := olds[name]; ok {
				keep(old, item, "")
			}
		}
	}
}

// NeedsRestart names the keys that differ and take effect at the next start only, those of items of lists by their name:
// gateway.listen, agents[a].workspace.
func NeedsRestart(old, new *Config) []string {
	var keys []string
	diff("", reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem(), "", func(path string) { keys = append(keys, path) })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// diff reports what differs between a and b where restart, a field's tag or one above it, says so.
func diff(path string, a, b reflect.Value, restart string, report func(path string)) {
	switch {
	case restart == "true":
		if a.Kind() == reflect.Struct && !isScalar(a.Type()) {
			diffFields(path, a, b, restart, report)
		} else if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			report(path)
		}
	case a.Kind() == reflect.Struct && !isScalar(a.Type()):
		diffFields(path, a, b, "", report)
	case a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Struct:
		diffItems(path, a, b, report)
	}
}

func diffFields(path string, a, b reflect.Value, restart string, report func(path string)) {
	for _, f := range fieldsOf(a.Type()) {
		tag := restart
		if tag == "" {
			tag = f.tag.Get("restart")
		}
		diff(key(path, f.name), a.FieldByIndex(f.index), b.FieldByIndex(f.index), tag, report)
	}
}

// diffItems compares the items that have the same name.
func diffItems(path string, a, b reflect.Value, report func(path string)) {
	news := byName(b)
	for name, x := range byName(a) {
		if y, still := news[name]; still {
			diff(path+"["+name+"]", x, y, "", report)
		}
	}
}

// byName are the items of a list that have an id or name.
func byName(list reflect.Value) map[string]reflect.Value {
	items := map[string]reflect.Value{}
	for i := range list.Len() {
		for _, f := range fieldsOf(list.Type().Elem()) {
			if f.name == "id" || f.name == "name" {
				items[list.Index(i).FieldByIndex(f.index).String()] = list.Index(i)
				break
			}
		}
	}
	return items
}
