package markup

import (
	"bytes"

	"github.com/yuin/goldmark/util"
)

// Reference reads a character reference at the beginning of s: its length, 0 if there is none, and what it stands for.
func Reference(s []byte) (size int, seen string) {
	end := bytes.IndexByte(s[:min(len(s), 40)], ';')
	if end < 2 {
		return 0, ""
	}
	ref := s[:end+1]
	v := util.ResolveEntityNames(util.ResolveNumericReferences(ref))
	if bytes.Equal(v, ref) {
		return 0, ""
	}
	return end + 1, string(v)
}
