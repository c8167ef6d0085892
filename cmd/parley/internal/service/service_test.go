package service

import (
	"testing"
)

func TestUnitWordsAreQuoted(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"/usr/bin/parley": "/usr/bin/parley", "/a b/c": `"/a b/c"`, `/50%$x`: `/50%%$$x`, `a"b\c`: `"a\"b\\c"`} {
		if got := unitWord(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
