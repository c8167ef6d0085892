// What chats are told of approvals, work folders and links.

package command

import (
	"fmt"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/control/file"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/workspace"
	"parley/workspace/disk"
)

func renderApprovals(list []approval.Item) string {
	if len(list) == 0 {
		return "Nothing waits for an answer."
	}
	var b strings.Builder
	cut := false
	for _, ap := range list {
		cut = cut || workspace.Line(ap.Text, 120) != ap.Text
		fmt.Fprintf(&b, "- **%s** %s: `%s`", ap.Short, workspace.Line(ap.Tool, 40), strings.ReplaceAll(workspace.Line(ap.Text, 120), "`", "ˋ"))
		if ap.Domain != "" {
			fmt.Fprintf(&b, ", belongs to %s", workspace.Line(ap.Domain, 40))
		}
		fmt.Fprintf(&b, ", asked for by %s\n", ap.AskedBy)
	}
	if cut {
		b.WriteString("Here they are cut short: read one whole where it was asked, in WebChat, or by `parley approval show`. ")
	}
	b.WriteString("`/approve <id> once` or `deny` answers it.")
	return b.String()
}

func renderApproval(v approval.Approval) string {
	switch {
	case v.State == workspace.ApprovalDenied:
		return "Denied. It does not run."
	case v.Approval.Grant == workspace.ForSession:
		return fmt.Sprintf("Approved, and `%s` for the rest of this session. /new ends that.", workspace.Line(v.Tool, 40))
	}
	return "Approved, once. I go on."
}

func renderStoppedAll(v run.StoppedAll) string {
	if v.Runs+v.Queued+v.Parts == 0 {
		return "Nothing is running anywhere."
	}
	return fmt.Sprintf("Stopped everywhere: %s, %s, %s.", control.Plural(v.Runs, "run"), control.Plural(v.Queued, "waiting message"), control.Plural(v.Parts, "unsent part"))
}

// approvalTold is how a question stands, in half a sentence.
func approvalTold(v approval.Approval) string {
	s := string(v.State)
	if v.DeciderName != "" {
		s += " by " + v.DeciderName
	}
	if v.Via != "" {
		s += " (" + v.Via + ")"
	}
	if v.Domain != "" {
		s += ", belongs to " + workspace.Line(v.Domain, 40)
	}
	return s
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

func renderLink(v person.LinkView) string {
	switch v.Outcome {
	case workspace.Linked:
		return fmt.Sprintf("Linked: here and on %s you are one person to me now. What each account may do stays as it was.", v.With)
	case workspace.LinkTries:
		return "You gave too many wrong codes. Wait ten minutes, then ask for a new one."
	case workspace.LinkSame:
		return "That is your own code: you are one person to me already. Give it on the other network."
	case workspace.LinkConfigured:
		return "I can't link you: the configuration says who both of you are. An owner can list both accounts under one person there."
	case workspace.LinkStranger:
		return "I can't link you: whoever asked for that code is not known here any more."
	}
	return "That code does not fit. A code lives ten minutes, works once and is replaced by a newer one; send /link on the other network for another."
}
