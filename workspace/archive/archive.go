//go:build unix

// Package archive writes a folder into one .tar.gz and puts it back, whatever a hostile program has left in it: the data
// directory with the work folders of agents in it. The cost is linear in what is on the disk, at any depth, for files
// with holes and for files of many names; memory does not grow with the number of files. What cannot be read is left out
// and listed, and ends nothing.
//
// The archive is a tar of PAX entries with a manifest as its last file. Three things in it are Parley's own: a file with
// holes is the list of its pieces (recordSize says how large it is), a path of more than a kilobyte or 32 names is cut by an entry
// .parley-deep/N, which holds the path that .parley-deep/N/ stands for, and a file of several names is kept once, with hard
// links to it. Format 1, which had none of them, is read too.
package archive

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrDamaged says that an archive is not what its maker wrote.
var ErrDamaged = errors.New("the backup is damaged or not one of Parley's")

const (
	formatPlain  = 1
	format       = 2
	manifestName = "manifest.json"
	recordSize   = "PARLEY.size" // of a file with holes
	deepPrefix   = ".parley-deep/"
	longPath     = 1024    // bytes of a path; a longer one is cut
	manyNames    = 32      // names in a path; one of more is cut too
	leftShown    = 100     // of what was left out, how many a Manifest names; the archive has all
	piecesMost   = 1 << 20 // of one file
	linksMost    = 20_000  // files of several names that are told apart at once
)

// Manifest says what an archive holds.
type Manifest struct {
	Format  int
	Created int64 // milliseconds since 1970 UTC
	Epoch   int64 // boot of the gateway that made it
	Files   int64
	Bytes   int64     // as written, before compression
	LeftOut int64     // how many were left out
	Left    []LeftOut // the first of them
}

// LeftOut is what an archive does not hold, with the reason.
type LeftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
}

// UnmarshalJSON takes a name alone too, as format 1 has it.
func (l *LeftOut) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &l.Name) == nil {
		return nil
	}
	type plain LeftOut
	return json.Unmarshal(data, (*plain)(l))
}

// saved is a file of an archive as the manifest has it.
type saved struct {
	Name   name   `json:"name"`
	Size   int64  `json:"size"` // of the entry
	SHA256 string `json:"sha256,omitempty"`
}

// name is one as the file system has it, which need not be text.
type name string

const coded = "base64:"

func (n name) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(n)) || strings.HasPrefix(string(n), coded) {
		return json.Marshal(coded + base64.StdEncoding.EncodeToString([]byte(n)))
	}
	return json.Marshal(string(n))
}

func (n *name) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	text, ok := strings.CutPrefix(s, coded)
	if !ok {
		*n = name(s)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	*n = name(raw)
	return err
}

// tally is the checksum of a list of files, in order: two lists are held against each other without keeping either.
type tally struct {
	n   int64
	sum hash.Hash
}

func newTally() *tally { return &tally{sum: sha256.New()} }

func (t *tally) add(s saved) {
	t.n++
	_, _ = io.WriteString(t.sum, strconv.Quote(string(s.Name))+" "+strconv.FormatInt(s.Size, 10)+" "+s.SHA256+"\n") // never fails
}

func (t *tally) same(o *tally) bool {
	return t.n == o.n && string(t.sum.Sum(nil)) == string(o.sum.Sum(nil))
}
