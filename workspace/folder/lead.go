package folder

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxConfig is how much of git's configuration is read.
const maxConfig = 1 << 20

// leads says which further paths of the folder are control paths since an owner's control path leads there: the target of a
// link, what git's configuration includes, the folder of its hooks, the repository that another shares. Each is relative to
// the folder; one that is not there yet is named too.
func (g *Guard) leads(f found) (list []string) {
	add := func(base, to string) {
		if to == "" || strings.HasPrefix(to, "~") {
			return
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(base, to)
		}
		to = filepath.Clean(to)
		for _, p := range []string{to, real(to)} {
			if p != g.dir && within(p, g.dir) {
				list = append(list, filepath.ToSlash(strings.TrimPrefix(p[len(g.dir):], "/")))
			}
		}
	}
	host := filepath.Join(g.dir, filepath.FromSlash(f.path))
	if f.link {
		if to, err := os.Readlink(host); err == nil {
			add(filepath.Dir(host), to)
		}
		return list
	}
	if !f.dir || f.head == "" && strings.ToLower(path.Base(f.path)) != ".git" {
		return list
	}
	work := host // where hooks run
	if f.head == "" {
		work = filepath.Dir(host)
	}
	add(host, firstLine(filepath.Join(host, "commondir")))
	dirs := []string{host}
	for _, pattern := range []string{"modules/*", "modules/*/modules/*", "worktrees/*"} {
		more, err := filepath.Glob(filepath.Join(host, pattern))
		if err == nil {
			dirs = append(dirs, more...)
		}
	}
	for _, d := range dirs {
		for _, name := range []string{"config", "config.worktree"} {
			c := readConfig(filepath.Join(d, name))
			for _, to := range c.included {
				add(d, to)
			}
			at := work
			if c.worktree != "" {
				if at = c.worktree; !filepath.IsAbs(at) {
					at = filepath.Join(d, at)
				}
			}
			for _, to := range c.hooks {
				add(at, to)
			}
		}
	}
	return list
}

func real(p string) string {
	if r, err := filepath.EvalSymlinks(p); err == nil {
		return r
	}
	return p
}

func firstLine(name string) string {
	line, _, _ := strings.Cut(string(readSome(name)), "\n")
	return strings.TrimSpace(line)
}

func readSome(name string) []byte {
	fi, err := os.Lstat(name)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return nil
	}
	return data
}

// gitConfig is what of git's configuration names paths that git obeys.
type gitConfig struct {
	included, hooks []string
	worktree        string
}

// readConfig reads it line by line. It takes more for a path than git does, and never less.
func readConfig(name string) (c gitConfig) {
	section := ""
	for s := bufio.NewScanner(bytes.NewReader(readSome(name))); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if rest, ok := strings.CutPrefix(line, "["); ok {
			head, after, _ := strings.Cut(rest, "]")
			section, _, _ = strings.Cut(strings.ToLower(head), " ")
			section, _, _ = strings.Cut(section, ".")
			if line = strings.TrimSpace(after); line == "" {
				continue
			}
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch section + "." + strings.ToLower(strings.TrimSpace(key)) {
		case "include.path", "includeif.path":
			c.included = append(c.included, value)
		case "core.hookspath":
			c.hooks = append(c.hooks, value)
		case "core.worktree":
			c.worktree = value
		}
	}
	return c
}
