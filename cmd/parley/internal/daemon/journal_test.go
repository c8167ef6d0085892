package daemon

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// T03: a live code goes to whoever started the gateway, by a terminal or a pipe, and not into the journal.
func TestT03_JournalIsKnown(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(w.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	if !intoJournal(w, own) {
		t.Error("the journal's own stream is not known")
	}
	for _, stream := range []string{"", "1:2", own + "0"} { // a child of a service has the variable too, with another stream
		if intoJournal(w, stream) {
			t.Errorf("%q: a pipe is taken for the journal", stream)
		}
	}
	if intoJournal(&bytes.Buffer{}, own) {
		t.Error("a buffer is taken for the journal")
	}
}
