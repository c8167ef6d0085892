package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"parley/tools"
	"parley/workspace"
)

//go:embed send_file.md
var sendFileText string

// MaxSent is how many bytes a file may have that is sent, where the network takes as many.
const MaxSent = 50 << 20

// ErrTooLarge is what a Keep returns for a file over its limit.
var ErrTooLarge = errors.New("larger than allowed")

// Kept is a file that is durable under the hash of what is in it, with the name and type that it may have outside.
type Kept struct {
	Ref, Name, MIME string
	Size            int64
}

// Keep copies what r holds, at most limit bytes, into the gateway's store of files. The same bytes again are the same
// file. More is ErrTooLarge. name is what the agent calls it.
type Keep func(r io.Reader, name string, limit int64) (Kept, error)

// SendFile is the tool send_file. Its effect class is store: it copies the file, which is not an effect that anybody sees,
// and what is to be sent is committed with the result; the queue of the room sends it, once. So after a crash it can be
// run again, where a send of its own would be in doubt.
func SendFile(keep Keep) tools.Tool { return sendFile{keep} }

type sendFile struct{ keep Keep }

type sendFileArgs struct {
	Path workspace.Path `json:"path"`
}

func (sendFile) Spec() tools.Spec {
	s := fileSpec("send_file", sendFileText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"file, relative to the work folder"}},`+
		`"required":["path"],"additionalProperties":false}`, workspace.Store)
	s.Group = tools.GroupSend
	return s
}

func (t sendFile) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.Decode[sendFileArgs](c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	if c.MaxFile <= 0 {
		return tools.Result{}, workspace.Say(workspace.ErrDenied, "This conversation takes no files. Put what matters into your answer.")
	}
	root, err := rootOf(c)
	if err != nil {
		return tools.Result{}, err
	}
	f, info, err := root.Open(args.Path)
	if err != nil {
		return tools.Result{}, err
	}
	defer f.Close()
	limit := min(c.MaxFile, MaxSent)
	tooLarge := workspace.Say(workspace.ErrTooLarge, "%q has %d bytes; this conversation takes at most %d.", args.Path.String(), info.Size, limit)
	switch {
	case info.Size == 0:
		return tools.Result{}, workspace.Say(workspace.ErrInvalid, "%q is empty, so there is nothing to send.", args.Path.String())
	case info.Size > limit:
		return tools.Result{}, tooLarge
	}
	kept, err := t.keep(f, info.Name, limit)
	if errors.Is(err, ErrTooLarge) { // it grew
		return tools.Result{}, tooLarge
	}
	if err != nil {
		return tools.Result{}, fmt.Errorf("keep a file to send: %w", err)
	}
	r := tools.TextResult(fmt.Sprintf("%s (%s, %d bytes) is on its way to this conversation.", kept.Name, kept.MIME, kept.Size))
	r.Files = []workspace.Content{{Kind: workspace.FileRef, Name: kept.Name, MIME: kept.MIME, Blob: kept.Ref, Size: kept.Size}}
	return r, nil
}
