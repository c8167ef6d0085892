package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/media"
)

// Put keeps a file that a message may then carry. name and kind are what the sender says; what it is, is read from
// its bytes. size is what is known of it before it is read; 0: nothing.
func (c *Files) Put(_ context.Context, call control.Call, name, kind string, size int64, r io.Reader) (workspace.Upload, error) {
	if err := c.Allow(call, "file.put"); err != nil {
		return workspace.Upload{}, err
	}
	tooLarge := workspace.Say(fmt.Errorf("upload: %w", channels.ErrTooLarge), "A file may have at most %d MiB.", workspace.MaxUpload>>20)
	enough := workspace.Say(workspace.ErrInvalid, "At most %d MiB may be uploaded in a day.", workspace.MaxUploadDay>>20)
	day := c.Now().Add(-24 * time.Hour)
	sum, err := c.Store.UploadedSince(call.Actor.Person, day)
	switch {
	case err != nil:
		return workspace.Upload{}, err
	case size > workspace.MaxUpload:
		return workspace.Upload{}, tooLarge
	case sum+size > workspace.MaxUploadDay:
		return workspace.Upload{}, enough
	}
	kept, err := c.Blobs.Take(r, workspace.MaxUpload)
	if errors.Is(err, blob.ErrTooLarge) {
		return workspace.Upload{}, tooLarge
	}
	if err != nil {
		return workspace.Upload{}, err
	}
	if kept.Size == 0 {
		return workspace.Upload{}, workspace.Say(workspace.ErrInvalid, "The file is empty.")
	}
	mime := media.Type(kept.Head)
	kind = kindOf(mime, kind)
	u := workspace.Upload{Ref: kept.Ref, Person: call.Actor.Person, Kind: kind, Name: media.Name(name, kind, mime),
		MIME: mime, Size: kept.Size, Created: c.Now()}
	err = c.Store.AddUpload(u, day, workspace.MaxUploadDay)
	if errors.Is(err, workspace.ErrConflict) {
		return workspace.Upload{}, enough
	}
	return u, err
}

// kindOf is what sort of attachment a file is: a container that may hold sound or pictures is what its sender says.
func kindOf(mime, said string) string {
	said, _, _ = strings.Cut(said, "/")
	switch {
	case media.Pictured(mime):
		return "image"
	case media.Sound(mime) && said == "audio", strings.HasPrefix(mime, "audio/"):
		return "audio"
	case strings.HasPrefix(mime, "video/"):
		return "video"
	}
	return "file"
}

// Attachment is a person's uploaded file as a message carries it.
func (c *Files) Attachment(_ context.Context, call control.Call, ref string) (channels.Attachment, error) {
	if err := c.Allow(call, "file.get"); err != nil {
		return channels.Attachment{}, err
	}
	u, err := c.Store.Upload(call.Actor.Person, ref)
	if err != nil {
		return channels.Attachment{}, workspace.Say(err, "There is no file %.70q. Upload it again.", ref)
	}
	return channels.Attachment{ID: u.Ref, Kind: u.Kind, Name: u.Name, MIME: u.MIME, Size: u.Size}, nil
}

// Open reads a kept file: a person's own upload, or, since they read every session, any for owners. name is what to
// call it when the record does not say. The caller closes it.
func (c *Files) Open(_ context.Context, call control.Call, ref, name string) (workspace.Upload, *blob.File, error) {
	if err := c.Allow(call, "file.get"); err != nil {
		return workspace.Upload{}, nil, err
	}
	missing := workspace.Say(workspace.ErrNotFound, "There is no file %.70q.", ref)
	u, err := c.Store.Upload(call.Actor.Person, ref)
	switch {
	case errors.Is(err, workspace.ErrNotFound) && !call.Owner():
		return workspace.Upload{}, nil, missing
	case err != nil && !errors.Is(err, workspace.ErrNotFound):
		return workspace.Upload{}, nil, err
	}
	f, err := c.Blobs.Open(ref)
	switch {
	case errors.Is(err, workspace.ErrNotFound) || errors.Is(err, workspace.ErrInvalid):
		return workspace.Upload{}, nil, missing
	case err != nil:
		return workspace.Upload{}, nil, err
	}
	if u.Ref == "" {
		head, err := f.Head()
		if err != nil {
			return workspace.Upload{}, nil, errors.Join(fmt.Errorf("read blob: %w", err), f.Close())
		}
		u = workspace.Upload{Ref: ref, MIME: media.Type(head)}
		u.Kind = kindOf(u.MIME, "")
	}
	if u.Name == "" || name != "" {
		u.Name = media.Name(name, u.Kind, u.MIME)
	}
	return u, f, nil
}
