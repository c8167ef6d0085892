// What was typed before, kept from one chat to the next.

package chat

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"

	"parley/cmd/parley/internal/cli"
)

// historyKept is how many lines are remembered from one chat to the next.
const historyKept = 1000

// history is what was typed, the newest last. What cannot be kept is not: a chat works without.
type history struct {
	lines []string
	file  string
	at    int    // which is shown; len(lines): the draft
	draft string // what was typed before looking back
}

// historyFile is in the user's state folder (XDG base directories).
func historyFile() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "parley", "history")
}

// openHistory reads the file, one JSON string a line, and cuts it when it grew to twice what is kept.
func openHistory(file string) *history {
	h := &history{file: file}
	f, err := os.Open(file)
	if err != nil {
		return h
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, cli.MaxTyped*2)
	read := 0
	for scan.Scan() {
		var line string
		if json.Unmarshal(scan.Bytes(), &line) == nil && line != "" {
			h.lines = append(h.lines, line)
		}
		read++
	}
	if len(h.lines) > historyKept {
		h.lines = h.lines[len(h.lines)-historyKept:]
	}
	h.at = len(h.lines)
	if read > 2*historyKept {
		h.rewrite()
	}
	return h
}

func (h *history) rewrite() {
	fresh := h.file + ".new"
	_ = os.Remove(fresh) // of one that was interrupted, if there is one
	if h.append(fresh, h.lines...) != nil {
		return
	}
	_ = os.Rename(fresh, h.file) // else it stays long
}

func (h *history) append(file string, lines ...string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	var data []byte
	for _, line := range lines {
		text, err := json.Marshal(line)
		if err != nil { // a string always marshals
			continue
		}
		data = append(append(data, text...), '\n')
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// add remembers a line, unless it is the newest already or begins with a blank.
func (h *history) add(line string) {
	if n := len(h.lines); line != "" && line[0] != ' ' && (n == 0 || h.lines[n-1] != line) {
		h.lines = append(h.lines, line)
		if h.file != "" && os.MkdirAll(filepath.Dir(h.file), 0o700) == nil {
			_ = h.append(h.file, line) // a chat works without
		}
	}
	h.at, h.draft = len(h.lines), ""
}

// back is the line before the one that is shown; typed is what stands there now.
func (h *history) back(typed string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.lines) {
		h.draft = typed
	}
	h.at--
	return h.lines[h.at], true
}

// forth is the line after it, at last the draft.
func (h *history) forth() (string, bool) {
	if h.at >= len(h.lines) {
		return "", false
	}
	if h.at++; h.at == len(h.lines) {
		return h.draft, true
	}
	return h.lines[h.at], true
}
