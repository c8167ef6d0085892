package builtin

import (
	"os"
	"path/filepath"
	"strings"
)

// programPath is the PATH of commands inside the sandbox, and where its programs come from: folders of the host that it
// shows read-only.
const programPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// FindProgram finds a program as the sandbox will: a name on its path, or an absolute path into one of its folders. Links
// in the folder are followed, that of the file is not: what it is called decides what many programs do. A relative path
// is none: it would name what a command has written.
func FindProgram(program string) (abs string, ok bool) {
	dirs := filepath.SplitList(programPath)
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) || filepath.Clean(program) != program {
			return "", false
		}
		dirs, program = []string{filepath.Dir(program)}, filepath.Base(program)
	}
	if program == "" || program == "." || program == ".." {
		return "", false
	}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || !strings.HasPrefix(real+"/", "/usr/") && real != "/bin" && real != "/sbin" {
			continue
		}
		at := filepath.Join(real, program)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return at, true
		}
	}
	return "", false
}
