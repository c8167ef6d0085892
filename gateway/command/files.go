package command

import (
	"context"
	"fmt"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/file"
	"parley/workspace/disk"
)

// filesVerb is the right that a line of /files needs.
func filesVerb(args []string) string {
	if first(args) == "rm" {
		return "files.remove"
	}
	return "files"
}

// checkFiles wants a path behind in and rm.
func checkFiles(args []string) error {
	if len(args) == 1 {
		return row("files").wrong("")
	}
	return nil
}

// files shows, or with rm removes; a / behind the path says that it is a folder with all that is in it.
func files(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	path := ""
	if len(args) == 2 {
		path = args[1]
	}
	var err error
	if first(args) == "rm" {
		_, err = c.Files.Remove(ctx, call, "", path, strings.HasSuffix(path, "/"))
	} else {
		_, err = file.Show.Call(ctx, c.Files, call, file.ShowIn{Path: path})
	}
	return err
}

// listed is how many lines a chat gets of each list.
const listed = 8

func renderFiles(v file.Filled) string {
	var b strings.Builder
	if v.Files == 0 {
		b.WriteString("The work folder is empty.")
	} else {
		more := ""
		if v.More {
			more = "more than "
		}
		fmt.Fprintf(&b, "The work folder holds %s%s of %s, in %d of %d files and folders.", more, disk.Size(v.Bytes), disk.Size(v.MaxBytes), v.Files, v.MaxFiles)
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

func writeItems(b *strings.Builder, list []file.Item) {
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

func renderRemoved(v file.Removed) string {
	what := fmt.Sprintf("`%s` is removed", strings.ReplaceAll(v.Path, "`", "'"))
	if v.Removed > 1 {
		what += fmt.Sprintf(", %d files and folders", v.Removed)
	}
	return fmt.Sprintf("%s. The work folder now holds %s of %s, in %d files and folders.", what, disk.Size(v.Left.Bytes), disk.Size(v.Left.MaxBytes), v.Left.Files)
}
