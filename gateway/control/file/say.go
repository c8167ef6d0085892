// What chats are told of work folders.

package file

import (
	"fmt"
	"strings"

	"parley/workspace/disk"
)

// listed is how many lines a chat gets of each list.
const listed = 8

func (v Filled) say() string {
	var b strings.Builder
	if v.Files == 0 {
		b.WriteString("The work folder is empty.")
	} else {
		more := ""
		if v.More {
			more = "more than "
		}
		fmt.Fprintf(&b, "The work folder holds %s%s of %s, in %d of %d files and folders.", more, disk.Size(v.Bytes),
			disk.Size(v.MaxBytes), v.Files, v.MaxFiles)
	}
	if v.DiskLow {
		fmt.Fprintf(&b, " The disk has %s free, and nothing is written below %s.", disk.Size(v.DiskFree), disk.Size(v.DiskKept))
	}
	if v.Shared {
		b.WriteString(" Other sessions work in it too.")
	}
	b.WriteByte('\n')
	if v.Path != "." {
		fmt.Fprintf(&b, "\nIn `%s/`:\n", v.Path)
	}
	writeItems(&b, v.Items)
	deep := v.Largest[:0:0]
	for _, it := range v.Largest {
		if strings.Contains(strings.TrimPrefix(it.Path, v.Path+"/"), "/") && it.Bytes >= 1<<20 {
			deep = append(deep, it)
		}
	}
	if len(deep) > 0 {
		b.WriteString("\nThe largest files further down:\n")
		writeItems(&b, deep)
	}
	if len(v.Mounted) > 0 {
		fmt.Fprintf(&b, "\nNot counted: `%s`, an owner's.\n", strings.Join(v.Mounted, "`, `"))
	}
	if v.Files > 0 {
		b.WriteString("\n/files rm and a path removes it; a folder wants a / behind its name. /files in and a folder shows what is in it.")
	}
	return strings.TrimSpace(b.String())
}

func writeItems(b *strings.Builder, list []Item) {
	for i, it := range list {
		if i == listed {
			fmt.Fprintf(b, "- and more\n")
			return
		}
		name := strings.ReplaceAll(it.Path, "`", "'")
		if it.Folder {
			fmt.Fprintf(b, "- %s · `%s/` (%d in it)\n", disk.Size(it.Bytes), name, it.Files)
			continue
		}
		fmt.Fprintf(b, "- %s · `%s`\n", disk.Size(it.Bytes), name)
	}
}

func (v Removed) say() string {
	what := fmt.Sprintf("`%s` is removed", strings.ReplaceAll(v.Path, "`", "'"))
	if v.Removed > 1 {
		what += fmt.Sprintf(", %d files and folders", v.Removed)
	}
	return fmt.Sprintf("%s. The work folder now holds %s of %s, in %d files and folders.", what, disk.Size(v.Left.Bytes),
		disk.Size(v.Left.MaxBytes), v.Left.Files)
}
