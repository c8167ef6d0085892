package configs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// maxSecretFile is the largest file that ${file:…} reads, in bytes.
const maxSecretFile = 64 << 10

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expander replaces ${…} in one text. It is run over decoded strings, never over the file, so that a quote or a newline in a
// credential cannot change the structure; what it puts in is not expanded again.
type expander struct {
	env  Lookup
	base string // folder that relative file names start from
	// fromFile gets what a ${file:…} held.
	fromFile func(text string)
}

// expand replaces ${VAR}, ${VAR:-default}, ${file:PATH} and $$; a $ before anything else stays. Errors name the variable or
// file, never a value.
func (e expander) expand(text string) (string, error) {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i == len(text)-1 {
			out.WriteString(text)
			return out.String(), nil
		}
		out.WriteString(text[:i])
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			text = text[i+2:]
		case '{':
			inner, rest, ok := strings.Cut(text[i+2:], "}")
			if !ok {
				return "", errors.New("${ is never closed with }; a plain $ before { is written $$")
			}
			value, err := e.one(inner)
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			text = rest
		default:
			out.WriteByte('$')
			text = text[i+1:]
		}
	}
}

// one is what stands between ${ and }.
func (e expander) one(inner string) (string, error) {
	if strings.Contains(inner, "${") {
		return "", errors.New("${…} cannot stand inside ${…}")
	}
	if path, ok := strings.CutPrefix(inner, "file:"); ok {
		return e.file(path)
	}
	name, fallback, hasFallback := strings.Cut(inner, ":-")
	if !variable.MatchString(name) {
		// What stands there is not shown: it may be a piece of a password that holds ${.
		return "", errors.New("${…} does not name a variable: write ${NAME}, ${NAME:-default} or ${file:PATH}, and $$ for a plain $")
	}
	value, set := e.env(name)
	switch {
	case hasFallback && value == "":
		return fallback, nil
	case !set:
		return "", fmt.Errorf("environment variable %s is not set; write ${%s:-} if it may be absent", name, name)
	}
	return value, nil
}

// file reads a credential's file. Only regular files are opened: a pipe would hold up the start.
func (e expander) file(path string) (string, error) {
	if path == "" {
		return "", errors.New("${file:} names no file")
	}
	path, err := absolute(path, e.base, e.env)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("${file:…} cannot be read: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("${file:%s} is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("${file:…} cannot be read: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", fmt.Errorf("${file:…} cannot be read: %w", err)
	}
	if len(content) > maxSecretFile {
		return "", fmt.Errorf("${file:%s} is larger than 64 KiB", path)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	e.fromFile(text)
	return text, nil
}

// absolute makes a file name absolute: ~ is the home directory, and relative names start at base.
func absolute(path, base string, env Lookup) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := homeDir(env)
		if err != nil {
			return "", err
		}
		return filepath.Join(home, path[1:]), nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path), nil
}

func homeDir(env Lookup) (string, error) {
	if home, _ := env("HOME"); filepath.IsAbs(home) {
		return home, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory: %w", err)
	}
	return home, nil
}
