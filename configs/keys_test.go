// Reads the types of all code, which takes the race detector half a minute and has no goroutine.

//go:build !race

package configs

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
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fixed are keys that need not be read elsewhere, and why.
var fixed = map[string]string{
	"sandbox.min_tier":     "it knows one value, which holds",
	"domains[].on_expiry":  "it knows one value, which holds",
	"domains[].single_use": "it knows one value, which holds",
}

// Each key is read by code outside this package, or it stands in the table of those that nothing reads, and then it is not.
func TestEveryKeyIsReadOrSaidToBeUnread(t *testing.T) {
	t.Parallel()
	read := fieldsRead(t)
	seen := map[string]bool{}
	leaves("", reflect.TypeFor[Config](), func(path string, owner reflect.Type, name string) {
		key := owner.Name() + "." + name
		block, listed := unreadBlock(path)
		seen[block] = true
		switch {
		case listed && read[key] && ownBlock(owner):
			t.Errorf("%s is read: it acts now, so take %q out of the table", path, block)
		case !listed && !read[key] && fixed[path] == "":
			t.Errorf("nothing reads %s (%s): add it to the table of unread keys, or use it", path, key)
		case !listed && read[key] && fixed[path] != "":
			t.Errorf("%s is read: take it out of the list of fixed ones", path)
		}
	})
	for path := range unread {
		if !seen[path] {
			t.Errorf("the table names %s, and there is no such key", path)
		}
	}
}

// ownBlock says that a struct stands in one place, so that reading one of its fields is reading that key.
func ownBlock(owner reflect.Type) bool { return owner != reflect.TypeFor[ToolFilter]() }

// unreadBlock is the entry of the table that a key belongs to.
func unreadBlock(path string) (string, bool) {
	for at := path; ; {
		if _, ok := unread[at]; ok {
			return at, true
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			return "", false
		}
		at = at[:cut]
	}
}

// leaves tells of each key that has none below it.
func leaves(path string, t reflect.Type, tell func(path string, owner reflect.Type, name string)) {
	for _, f := range fieldsOf(t) {
		at := key(path, f.name) + suffix(f.typ)
		if hasKeys(f.typ) {
			leaves(at, elem(f.typ), tell)
			continue
		}
		owner := t
		for _, i := range f.index[:len(f.index)-1] {
			owner = owner.Field(i).Type
		}
		tell(key(path, f.name), owner, owner.Field(f.index[len(f.index)-1]).Name)
	}
}

// fieldsRead are the fields of this package's structs, as Type.Field, that code outside it reads.
func fieldsRead(t *testing.T) map[string]bool {
	t.Helper()
	const self = "parley/configs"
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles, Imports        []string
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports", "parley/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports, using := map[string]string{}, []listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if slices.Contains(p.Imports, self) {
			using = append(using, p)
		}
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	read := map[string]bool{}
	for _, p := range using {
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
		if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, set, files, info); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			written := assigned(f)
			for e, s := range info.Selections {
				if v, ok := s.Obj().(*types.Var); ok && v.IsField() && v.Pkg() != nil && v.Pkg().Path() == self && !written[e] {
					read[fieldOwner(s)+"."+v.Name()] = true
				}
			}
		}
	}
	if len(using) < 3 || len(read) < 50 {
		t.Fatalf("%d packages read %d fields", len(using), len(read))
	}
	return read
}

// fieldOwner is the struct that a selected field stands in.
func fieldOwner(s *types.Selection) string {
	at := s.Recv()
	for i, n := range s.Index() {
		if p, ok := at.Underlying().(*types.Pointer); ok {
			at = p.Elem()
		}
		if i == len(s.Index())-1 {
			break
		}
		at = at.Underlying().(*types.Struct).Field(n).Type()
	}
	if n, ok := types.Unalias(at).(*types.Named); ok {
		return n.Obj().Name()
	}
	return fmt.Sprint(at)
}

// assigned are the selectors that a file only writes to.
func assigned(f *ast.File) map[*ast.SelectorExpr]bool {
	list := map[*ast.SelectorExpr]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && (a.Tok == token.ASSIGN || a.Tok == token.DEFINE) {
			for _, l := range a.Lhs {
				if e, ok := l.(*ast.SelectorExpr); ok {
					list[e] = true
				}
			}
		}
		return true
	})
	return list
}
