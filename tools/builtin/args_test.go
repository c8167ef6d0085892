package builtin

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/workspace"
)

// notPaths are the arguments that are text and name no file. One that does is a workspace.Path.
var notPaths = []string{"write_file.content", "edit_file.old_text", "edit_file.new_text", "resolve_path.kind", "exec.command"}

// argTypes are what each tool decodes its arguments into.
func argTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"read_file": reflect.TypeFor[readFileArgs](), "write_file": reflect.TypeFor[writeFileArgs](), "edit_file": reflect.TypeFor[editFileArgs](),
		"list_dir": reflect.TypeFor[listDirArgs](), "resolve_path": reflect.TypeFor[resolvePathArgs](), "exec": reflect.TypeFor[execArgs](),
		"send_file": reflect.TypeFor[sendFileArgs](), "remove_file": reflect.TypeFor[removeFileArgs](),
	}
}

// TestT17_APathIsOneTypeThatOnlyTheRootOpens: every argument is a path, a number, or text that is known not to be one;
// what the tool says of its paths to policy is the same.
func TestT17_APathIsOneTypeThatOnlyTheRootOpens(t *testing.T) {
	t.Parallel()
	types := argTypes()
	for _, tool := range newDesk(t).tools() {
		spec := tool.Spec()
		args, ok := types[spec.Name]
		if !ok {
			t.Errorf("%s is not in the table of this test", spec.Name)
			continue
		}
		var paths []string
		for i := range args.NumField() {
			f := args.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Type == reflect.TypeFor[workspace.Path]():
				paths = append(paths, name)
			case f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Bool:
			case f.Type.Kind() == reflect.String && slices.Contains(notPaths, spec.Name+"."+name):
			default:
				t.Errorf("%s.%s is %s: a path is a workspace.Path, other text belongs into the list of this test", spec.Name, name, f.Type)
			}
		}
		if !slices.Equal(paths, spec.Roots) {
			t.Errorf("%s has the paths %v, and says %v", spec.Name, paths, spec.Roots)
		}
	}
	for i := range reflect.TypeFor[workspace.Path]().NumField() {
		if f := reflect.TypeFor[workspace.Path]().Field(i); f.IsExported() {
			t.Errorf("workspace.Path.%s can be read by anybody", f.Name)
		}
	}
}

// TestT17_ToolsOpenNothingThemselves: they have no way to the host but the Root and the sandbox. Only the search of a
// program looks at the host, for a name that no agent can make.
func TestT17_ToolsOpenNothingThemselves(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "program.go" {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if path == "os" || path == "os/exec" || path == "syscall" || path == "io/ioutil" || path == "net" || strings.HasPrefix(path, "golang.org/x/sys") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}
