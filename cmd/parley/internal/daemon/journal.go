// Whether what is printed goes into the journal of the system.

package daemon

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// intoJournal says whether what is written there is kept by systemd's journal, which names its stream as device:inode in
// $JOURNAL_STREAM (systemd.exec(5)). Others may read the journal, so that no live code belongs into it (T03).
func intoJournal(out io.Writer, stream string) bool {
	f, ok := out.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
