package main

import (
	"bytes"
	"fmt"
	"go/token"
	"go/types"
	"unicode/utf8"
)

// maxColumns is where a line is long; a tab counts as four.
const maxColumns = 140

// figures are the shape of one package.
type figures struct {
	files, lines, longLines                    int
	arrows, back                               int // between files; those that run back up in the best order that was found
	component, componentLines                  int // the largest group of files that all need one another; 0: there is none
	widestStruct, widestInterface, mostMethods widest
}

// widest is the largest of a kind, by name.
type widest struct {
	name string
	n    int
}

func (w widest) String() string {
	if w.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %s", w.n, w.name)
}

func (w *widest) see(name string, n int) {
	if n > w.n {
		*w = widest{name, n}
	}
}

func measure(p *pkg) figures {
	f := shape([]*pkg{p})
	for _, src := range p.files {
		for line := range bytes.Lines(src.text) {
			line = bytes.TrimRight(line, "\r\n")
			if utf8.RuneCount(line)+3*bytes.Count(line, []byte("\t")) > maxColumns {
				f.longLines++
			}
		}
	}
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		named, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || named.IsAlias() {
			continue
		}
		switch t := named.Type().Underlying().(type) {
		case *types.Struct:
			f.widestStruct.see(name, t.NumFields())
		case *types.Interface:
			f.widestInterface.see(name, t.NumMethods())
		}
		if t, ok := named.Type().(*types.Named); ok {
			exported := 0
			for m := range t.Methods() {
				if m.Exported() {
					exported++
				}
			}
			f.mostMethods.see(name, exported)
		}
	}
	return f
}

// sum is the shape of several packages as if they were one.
func sum(all []*pkg) figures { return shape(all) }

// shape is what the arrows between files say: a file points at another that declares something it uses.
func shape(all []*pkg) (f figures) {
	at := map[string]int{} // file name -> node
	var lines []int
	for _, p := range all {
		for _, src := range p.files {
			name := p.set.Position(src.file.Package).Filename
			at[name] = len(lines)
			lines = append(lines, bytes.Count(src.text, []byte("\n")))
		}
	}
	g := newGraph(len(lines))
	for _, p := range all {
		for id, obj := range p.info.Uses {
			from, to := at[p.set.Position(id.Pos()).Filename], declaredIn(p, obj, at)
			if to >= 0 && to != from {
				g.add(from, to)
			}
		}
	}
	f.files = len(lines)
	for _, n := range lines {
		f.lines += n
	}
	f.arrows, f.back = g.arrows(), g.backArrows()
	for _, group := range g.components() {
		if len(group) > 1 && len(group) > f.component {
			f.component, f.componentLines = len(group), 0
			for _, v := range group {
				f.componentLines += lines[v]
			}
		}
	}
	return f
}

// declaredIn is the file that declares an object, or -1 where it is none of those looked at. The position of what comes from
// another package is read from its export data, which names the file as well.
func declaredIn(p *pkg, obj types.Object, at map[string]int) int {
	if obj == nil || obj.Pos() == token.NoPos {
		return -1
	}
	if i, ok := at[p.set.Position(obj.Pos()).Filename]; ok {
		return i
	}
	return -1
}
