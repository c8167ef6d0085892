// How this program is called, as hints say it.

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"parley/workspace/lazy"
)

// Name is what the program is called where it is installed.
const Name = "parley"

// Program is what somebody types to run this very program: its name where the shell finds it by that, else its path.
var Program = sync.OnceValue(func() string {
	self, err := os.Executable()
	if err != nil {
		return Name
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = ""
	}
	found, _ := exec.LookPath(Name)
	return programAt(self, found, dir)
})

// programAt is Program for a program at self, where the shell finds another at found; dir is the working folder.
func programAt(self, found, dir string) string {
	if found != "" && sameFile(self, found) {
		return Name
	}
	path := self
	if near, err := filepath.Rel(dir, self); err == nil && dir != "" && filepath.IsLocal(near) {
		if path = near; !strings.ContainsRune(path, filepath.Separator) {
			path = "." + string(filepath.Separator) + path
		}
	}
	if strings.ContainsAny(path, " \t'\"\\$`&|;()<>*?[]#~!{}") {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// command is where a text names one of this program's commands, in the words that are its own.
var command = lazy.Regexp("(^|[\\s\"'`(:])parley (agent|approval|audit|backup|channel|chat|completion|config|doctor|files|folder|" +
	"gateway|help|logs|model|onboard|outbound|pairing|people|restore|route|run|send|service|session|status|stop|usage|version|webchat|--)")

// Hinted is a text with each command of this program as it works when it is typed: every hint passes here.
func Hinted(text string) string { return hinted(text, Program()) }

func hinted(text, program string) string {
	if program == Name || !strings.Contains(text, Name+" ") {
		return text
	}
	return command().ReplaceAllStringFunc(text, func(s string) string { return strings.Replace(s, Name+" ", program+" ", 1) })
}
