// Package media looks at files of strangers: what they are by their bytes, what they may be called here, and pictures
// made small enough for a model. What a sender says of a file is a label and is never believed. It reads and writes no
// file and starts no goroutine.
package media

import (
	"strings"
	"unicode"

	"github.com/gabriel-vasile/mimetype"
)

// HeadSize is how many bytes of the beginning Type looks at.
const HeadSize = 3072

// Type is what the beginning of a file says that it is, without parameters; application/octet-stream when it says nothing.
func Type(head []byte) string {
	mime, _, _ := strings.Cut(mimetype.Detect(head).String(), ";")
	return mime
}

// PDF is the type of a document that models may see.
const PDF = "application/pdf"

// Pictured says that Shrink reads the type.
func Pictured(mime string) bool {
	switch mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return true
	}
	return false
}

// Sound says that a recording may be in it: some containers are known by their sound only from the inside.
func Sound(mime string) bool {
	switch mime {
	case "application/ogg", "video/ogg", "video/mp4", "video/webm":
		return true
	}
	return strings.HasPrefix(mime, "audio/")
}

// Limits of a file's name, in characters.
const (
	maxStem = 60
	maxExt  = 10
)

// Name makes what a sender calls a file into a name to keep it under: letters, digits, "_", "-" and ".", without a path,
// a leading dot or dash, or anything that nobody sees. It is at most 71 characters and 255 bytes long. A name without an
// extension gets that of the type; without a name it is called by stem, which is trusted.
func Name(claimed, stem, mime string) string {
	if i := strings.LastIndexAny(claimed, `/\`); i >= 0 {
		claimed = claimed[i+1:]
	}
	name, ext := claimed, ""
	if i := strings.LastIndexByte(claimed, '.'); i > 0 && plainExt(claimed[i+1:]) {
		name, ext = claimed[:i], "."+strings.ToLower(claimed[i+1:])
	}
	if name = tidy(name); name == "" {
		name = stem
	}
	if ext == "" {
		ext = extension(mime)
	}
	return name + ext
}

func plainExt(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= maxExt
}

// extension is the usual one of a type. The library's first choice is wrong for recordings: services that transcribe
// go by the name.
func extension(mime string) string {
	switch mime {
	case "application/ogg", "audio/ogg", "video/ogg":
		return ".ogg"
	case "image/jpeg":
		return ".jpg"
	case "text/plain":
		return ".txt"
	}
	if m := mimetype.Lookup(mime); m != nil && m.Extension() != "" {
		return m.Extension()
	}
	return ".bin"
}

// tidy keeps letters, their marks (two at most on each) and digits; each run of anything else becomes one "_".
func tidy(s string) string {
	var b strings.Builder
	n, marks := 0, 0
	gap := byte(0)
	for _, r := range s {
		switch {
		case unicode.IsMark(r):
			if marks++; marks > 2 || n == 0 || gap != 0 {
				continue
			}
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			marks = 0
		default:
			if gap == 0 || gap == '_' {
				gap = separator(r)
			}
			continue
		}
		if n == 0 {
			gap = 0
		}
		if n += 1 + min(int(gap), 1); n > maxStem || b.Len() > 180 {
			break
		}
		if gap != 0 {
			b.WriteByte(gap)
		}
		gap = 0
		b.WriteRune(r)
	}
	return b.String()
}

func separator(r rune) byte {
	if r == '-' || r == '.' {
		return byte(r)
	}
	return '_'
}
