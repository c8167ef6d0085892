package attachment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/blob"
)

// openChannel is a network that gives files as a test says.
type openChannel struct {
	open func(ctx context.Context, a channels.Attachment) (io.ReadCloser, error)
}

func (openChannel) Run(ctx context.Context, _ channels.Intake) error {
	<-ctx.Done()
	return nil
}

func (openChannel) Send(context.Context, channels.Post) (channels.MessageID, error) { return "1", nil }

func (c openChannel) Open(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	return c.open(ctx, a)
}

// fetchOne fetches the attachments of one message from such a network.
func fetchOne(t *testing.T, timeout time.Duration, open func(context.Context, channels.Attachment) (io.ReadCloser, error), list ...channels.Attachment) (Fetched, string) {
	t.Helper()
	dir := t.TempDir()
	all := &transport.Channels{}
	all.Add(transport.New(configs.Channel{Name: "c", Type: "test"}, openChannel{open}, slog.New(slog.DiscardHandler), time.Now))
	f := New(Options{Blobs: blob.New(filepath.Join(dir, "blobs")), Channels: all, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	f.timeout, f.pause = timeout, time.Millisecond
	in := workspace.Input{ID: "in", RoomID: "room", Data: workspace.InputData{Channel: "c", Attachments: list}}
	return f.Fetch(t.Context(), Batch{WorkDir: filepath.Join(dir, "work"), Inputs: []workspace.Input{in}}), dir
}

// blocked is a body that gives nothing and knows no context; only closing it ends a read.
type blocked struct{ closed chan struct{} }

func (b blocked) Read([]byte) (int, error) {
	<-b.closed
	return 0, errors.New("closed")
}

func (b blocked) Close() error {
	close(b.closed)
	return nil
}

func TestT18_FetchThatHangsEnds(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(context.Context, channels.Attachment) (io.ReadCloser, error){
		"before the file": func(ctx context.Context, _ channels.Attachment) (io.ReadCloser, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"in the file": func(context.Context, channels.Attachment) (io.ReadCloser, error) {
			return blocked{make(chan struct{})}, nil
		},
		"panics": func(context.Context, channels.Attachment) (io.ReadCloser, error) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := fetchOne(t, 10*time.Millisecond, open, channels.Attachment{ID: "f", Kind: "file", Name: "a.txt"})
			if len(got.Notices) != 1 || len(got.Content["in"]) != 1 || !strings.Contains(got.Content["in"][0].Text, "a.txt is missing") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestT18_FilesOfOneMessageAreBounded(t *testing.T) {
	t.Parallel()
	var list []channels.Attachment
	for i := range maxAttachments + 3 {
		list = append(list, channels.Attachment{ID: fmt.Sprint(i), Kind: "file", Name: fmt.Sprint(i, ".txt")})
	}
	list[1].Size = maxAttachment + 1
	opened := make(chan string, len(list))
	got, dir := fetchOne(t, time.Minute, func(_ context.Context, a channels.Attachment) (io.ReadCloser, error) {
		opened <- a.ID
		if a.ID == "2" { // without an end, and its size was not told
			return io.NopCloser(endless{}), nil
		}
		return io.NopCloser(strings.NewReader("text " + a.ID)), nil
	}, list...)
	if n := len(opened); n != maxAttachments-1 {
		t.Errorf("%d files were opened", n)
	}
	content := got.Content["in"]
	if len(content) != len(list) || len(got.Notices) != 1 {
		t.Fatalf("%+v", got)
	}
	for i, c := range content {
		missing := i == 1 || i == 2 || i >= maxAttachments
		if strings.Contains(c.Text, "missing") != missing || (c.Blob == "") != missing {
			t.Errorf("%d: %+v", i, c)
		}
	}
	if n := got.Notices[0].Text; !strings.HasPrefix(n, "I could not get your files 1.txt, 2.txt, 10.txt, 11.txt, 12.txt: ") || strings.Contains(n, "\n") {
		t.Errorf("%q", n)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "blobs", "*"))
	if err != nil || len(kept) > maxAttachments-2 {
		t.Errorf("%q, %v", kept, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestT18_OnePersonDoesNotFillTheDisk(t *testing.T) {
	t.Parallel()
	now := time.Unix(86400*20000, 0)
	f := New(Options{Now: func() time.Time { return now }})
	guest := workspace.Input{Person: "g", Role: workspace.Guest}
	for f.spend(guest, maxAttachment) {
	}
	if f.spent["g"] > maxDay || f.spent["g"] < maxDay-maxAttachment || f.spend(guest, maxAttachment) {
		t.Errorf("%d bytes were taken", f.spent["g"])
	}
	if !f.spend(workspace.Input{Person: "h", Role: workspace.Guest}, maxAttachment) || !f.spend(workspace.Input{Person: "g", Role: workspace.Owner}, maxDay+1) {
		t.Error("somebody else, or an owner, is held to it")
	}
	now = now.Add(24 * time.Hour)
	if !f.spend(guest, maxAttachment) {
		t.Error("the next day is not a new one")
	}
}
