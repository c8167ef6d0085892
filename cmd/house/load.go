package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// pkg is one package of this module with its types resolved.
type pkg struct {
	path    string // without the module's name
	files   []source
	set     *token.FileSet
	info    *types.Info
	types   *types.Package
	in, out int // packages of this module that import it, that it imports
}

// source is one file of a package.
type source struct {
	name string
	text []byte
	file *ast.File
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	Standard                bool
	GoFiles, Imports        []string
	Module                  *struct{ Path string }
}

// load lists the module that dir is in, with everything it imports, and resolves the types of its own packages.
func load(dir string) ([]*pkg, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,Standard,GoFiles,Imports,Module", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	root, err := moduleRoot(dir)
	if err != nil {
		return nil, err
	}
	cmd.Dir = root.dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var own []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if l.Module != nil && l.Module.Path == root.module {
			own = append(own, l)
		}
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []*pkg
	for _, l := range own {
		p, err := resolve(root.module, l, set, from)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	countImports(root.module, own, all)
	sort.Slice(all, func(i, j int) bool { return all[i].path < all[j].path })
	return all, nil
}

// root is where a module is and what it is called.
type root struct{ dir, module string }

func moduleRoot(dir string) (root, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return root{}, fmt.Errorf("go list -m: %w", err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 2 {
		return root{}, fmt.Errorf("go list -m: %q", out)
	}
	return root{lines[0], lines[1]}, nil
}

func resolve(module string, l listed, set *token.FileSet, from types.Importer) (*pkg, error) {
	p := &pkg{path: strings.TrimPrefix(l.ImportPath, module+"/"), set: set,
		info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	var parsed []*ast.File
	for _, name := range l.GoFiles {
		full := filepath.Join(l.Dir, name)
		text, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(set, full, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files, parsed = append(p.files, source{name, text, f}), append(parsed, f)
	}
	var err error
	p.types, err = (&types.Config{Importer: from, FakeImportC: true}).Check(l.ImportPath, set, parsed, p.info)
	if err != nil {
		return nil, fmt.Errorf("types of %s: %w", l.ImportPath, err)
	}
	return p, nil
}

func countImports(module string, own []listed, all []*pkg) {
	at := map[string]*pkg{}
	for _, p := range all {
		at[module+"/"+p.path] = p
	}
	for _, l := range own {
		for _, i := range l.Imports {
			if to, from := at[i], at[l.ImportPath]; to != nil && from != nil {
				to.in++
				from.out++
			}
		}
	}
}
