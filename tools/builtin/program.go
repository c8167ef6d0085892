package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// StampProgram tells a program's file from every other that is, was or will be under its name: a package that is upgraded, or
// a file that is written over, has another stamp.
func StampProgram(abs string) (stamp string, ok bool) {
	info, err := os.Stat(abs)
	if err != nil {
		return "", false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%d:%d:%d:%d:%d.%09d", st.Dev, st.Ino, st.Size, info.ModTime().UnixNano(), st.Ctim.Sec, st.Ctim.Nsec), true
}
