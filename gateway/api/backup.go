package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"

	"parley/gateway/api/wire"
	"parley/gateway/control/operator"
	"parley/workspace/clip"
)

// backup sends the data directory as a .tar.gz. It is made whole before the first byte goes out, so that a failure is
// a problem and never half a file.
func (o upkeep) backup(w http.ResponseWriter, r *http.Request) (err error) {
	if err := wire.Decode(w, r, &wire.NoBody{}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", ".parley-backup-") // by this name it leaves itself out where $TMPDIR is the data directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "parley.tar.gz")
	saved, err := o.control.Operator.Backup(r.Context(), o.call(r), name)
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Content-Disposition", `attachment; filename="parley-`+o.now().UTC().Format("20060102T150405Z")+`.tar.gz"`)
	h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	if saved.LeftOut > 0 {
		h.Set("Parley-Left-Out", leftOut(saved))
	}
	if _, err := f.WriteTo(w); err != nil {
		o.log.Warn("backup was not taken to its end", "err", err)
	}
	return nil
}

// leftOutMost is how many files the header names.
const leftOutMost = 20

// leftOut is a header's value: JSON in ASCII.
func leftOut(s operator.Saved) string {
	type file struct {
		Name   string `json:"name"`
		Reason string `json:"reason"`
	}
	v := struct {
		Count int64  `json:"count"`
		First []file `json:"first"`
	}{Count: s.LeftOut}
	for _, l := range s.Left[:min(len(s.Left), leftOutMost)] {
		v.First = append(v.First, file{clip.Runes(l.Name, 200), clip.Runes(l.Reason, 100)})
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(string(text))) {
		if unit < 0x7f {
			b.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	return b.String()
}
