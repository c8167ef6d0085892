package file

import (
	"slices"
	"strings"

	"parley/gateway/turn"
	"parley/workspace"
	"parley/workspace/disk"
)

// openWork is a work folder in use. Its root is nil while nothing has worked there.
type openWork struct{ turn.Work }

func (w *openWork) close() {
	if w.Root != nil {
		_ = w.Root.Close() // nothing was written through it
	}
}

// inside is a path in its clean form, if it is in the work folder itself. An owner's folder is the owner's to clear.
func (w *openWork) inside(path string) (string, error) {
	clean, err := w.Root.Resolve(workspace.At(path))
	if err != nil {
		return "", err
	}
	if first, _, _ := strings.Cut(clean, "/"); slices.Contains(w.Mounted, first) {
		return "", workspace.Say(workspace.ErrDenied,
			"%s is a folder of an owner that is shown in the work folder. It is not counted, and nothing in it is removed here.",
			workspace.Line(first, 60))
	}
	return clean, nil
}

// refused says why a thing was not removed.
func (w *openWork) refused(path string, folder bool, err error) error {
	if !folder {
		if info, serr := w.Root.Stat(workspace.At(path)); serr == nil && info.Kind == workspace.KindDir {
			name := workspace.Line(strings.TrimRight(path, "/"), 200)
			return workspace.Say(workspace.ErrInvalid, "%s is a folder. All that is in it goes too when you say so: "+
				"/files rm %s/ in a chat, --folder on the command line, folder=true over HTTP.", name, name)
		}
	}
	return err
}

// view counts what is there.
func (w *openWork) view(k workspace.Key, path string) (Filled, error) {
	v := Filled{Session: k.String(), Path: ".", Items: []Item{}, Largest: []Item{},
		Mounted: append([]string{}, w.Mounted...), Shared: w.Shared}
	if w.Root == nil {
		return v, nil
	}
	if path != "" {
		var err error
		if v.Path, err = w.inside(path); err != nil {
			return v, err
		}
	}
	all, err := w.Root.Filled()
	if err != nil {
		return v, err
	}
	most := w.Root.Limits()
	v.Bytes, v.Files, v.More, v.MaxBytes, v.MaxFiles = all.Bytes, all.Used.Files, all.More, most.Bytes, most.Files
	shown := all
	if v.Path != "." {
		if shown, err = w.Root.FilledBelow(workspace.At(v.Path)); err != nil {
			return v, err
		}
	}
	v.Items, v.Largest = w.items(shown.Top), w.items(shown.Files)
	if s, ok := w.Root.Space(); ok {
		v.DiskFree, v.DiskKept, v.DiskLow = s.Free, s.Floor+s.Reserve, s.Low()
	}
	return v, nil
}

// items are those of the work folder itself: at the name of an owner's folder a link stands that commands follow.
func (w *openWork) items(list []disk.Item) []Item {
	out := []Item{}
	for _, it := range list {
		if slices.Contains(w.Mounted, it.Path) {
			continue
		}
		shown := workspace.Line(it.Path, workspace.MaxPath)
		_, err := w.Root.Resolve(workspace.At(it.Path))
		out = append(out, Item{Path: shown, Folder: it.Folder, Bytes: it.Bytes, Files: it.Files, Removable: err == nil && shown == it.Path})
	}
	return out
}
