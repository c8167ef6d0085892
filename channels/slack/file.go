package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const sharePolls = 8 // questions about where a file was shared, which Slack does in the background

// sendFile uploads one file and shares it with the text as its comment (https://docs.slack.dev/messaging/working-with-files).
func (c *Channel) sendFile(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	if len(p.Files) > 1 {
		return "", bad("%d files in one message: one goes at a time", len(p.Files))
	}
	file := p.Files[0]
	if file.Size == 0 || file.Size > maxFile {
		return "", bad("the file has %d bytes, Slack takes 1 to %d", file.Size, maxFile)
	}
	f, err := file.Open(ctx)
	if err != nil {
		return "", bad("open the file to send: %v", err)
	}
	defer f.Close()
	var up *slackgo.GetUploadURLExternalResponse
	err = c.do(ctx, "files.getUploadURLExternal", func(ctx context.Context, api *slackgo.Client) (err error) {
		up, err = api.GetUploadURLExternalContext(ctx, slackgo.GetUploadURLExternalParameters{FileName: file.Name, FileSize: int(file.Size)})
		return err
	})
	if err == nil {
		err = c.upload(ctx, up.UploadURL, f, file.Size)
	}
	if err != nil {
		return "", unsent(err)
	}
	done := slackgo.CompleteUploadExternalParameters{Files: []slackgo.FileSummary{{ID: up.FileID, Title: file.Name}}, Channel: string(p.To.Peer),
		InitialComment: p.Text, ThreadTimestamp: threadOf(p)}
	complete := func(ctx context.Context, api *slackgo.Client) error {
		_, err := api.CompleteUploadExternalContext(ctx, done)
		return err
	}
	err = c.do(ctx, "files.completeUploadExternal", complete)
	if p.To.Thread == "" && done.ThreadTimestamp != "" && says(err, "thread_not_found", "message_not_found") {
		done.ThreadTimestamp = ""
		err = c.do(ctx, "files.completeUploadExternal", complete)
	}
	if err != nil {
		return "", err
	}
	return c.shared(ctx, p.To.Peer, up.FileID)
}

// unsent: before the last call nobody sees anything, so that a doubt is none.
func unsent(err error) error {
	var e *channels.Error
	if errors.As(err, &e) && e.Class == channels.Unknown {
		return &channels.Error{Class: channels.Retry, After: e.After, Err: e.Err}
	}
	return err
}

// upload puts the bytes at the address that Slack gave, which is a secret and takes no token.
func (c *Channel) upload(ctx context.Context, address string, f io.Reader, size int64) error {
	if !c.ours(address) {
		return bad("slack gave an upload address that is not its own")
	}
	ctx, a := watched(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, io.NopCloser(io.LimitReader(f, size)))
	if err != nil {
		return bad("slack gave an upload address that is none")
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return c.fail("upload", a, err)
	}
	defer resp.Body.Close()
	return c.fail("upload", a, status(resp))
}

// shared learns the message by which a file was shared. Nobody waits for it for long: without it the message cannot be
// edited, and nothing else is lost.
func (c *Channel) shared(ctx context.Context, peer channels.PeerID, file string) (channels.MessageID, error) {
	type share struct {
		TS string `json:"ts"`
	}
	for try := range sharePolls {
		info, err := read[struct {
			File struct {
				Shares struct {
					Public  map[string][]share `json:"public"`
					Private map[string][]share `json:"private"`
				} `json:"shares"`
			} `json:"file"`
		}](ctx, c, "files.info", url.Values{"file": {file}})
		if err == nil {
			for _, list := range [][]share{info.File.Shares.Public[string(peer)], info.File.Shares.Private[string(peer)]} {
				if len(list) > 0 && list[0].TS != "" {
					return channels.MessageID(list[0].TS), nil
				}
			}
		}
		if !channels.Sleep(ctx, c.pace.first<<min(try, 3)/4) {
			break
		}
	}
	return channels.MessageID("file:" + file), nil
}

// Open opens an attachment. Its size is looked at before anything is fetched, and again while it is read; the token goes
// to Slack's own hosts only.
func (c *Channel) Open(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	info, err := read[struct {
		File slackFile `json:"file"`
	}](ctx, c, "files.info", url.Values{"file": {a.ID}})
	if err != nil {
		return nil, err
	}
	f, limit := info.File, a.Size
	if limit <= 0 {
		limit = f.Size
	}
	if limit <= 0 || limit > maxFile || f.Size > limit {
		return nil, fmt.Errorf("open attachment: slack says %d bytes, the message said %d: %w", f.Size, a.Size, channels.ErrTooLarge)
	}
	address := f.Download
	if address == "" {
		address = f.Private
	}
	if f.External || !c.ours(address) {
		return nil, bad("open attachment: the file is kept elsewhere")
	}
	return c.download(ctx, address, f.MIME, limit)
}

func (c *Channel) download(ctx context.Context, address, mime string, limit int64) (io.ReadCloser, error) {
	ctx, a := watched(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, bad("open attachment: slack gave no address of it")
	}
	req.Header.Set("Authorization", "Bearer "+c.opts.BotToken.Reveal())
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.fail("download", a, err)
	}
	if err := status(resp); err != nil {
		resp.Body.Close()
		return nil, c.fail("download", a, err)
	}
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") && !strings.HasPrefix(mime, "text/html") {
		resp.Body.Close() // the page on which one signs in
		return nil, &channels.Error{Class: channels.BadMessage, Err: errors.New("open attachment: the token may not read it; the app may lack the scope files:read")}
	}
	if resp.ContentLength > limit {
		resp.Body.Close()
		return nil, fmt.Errorf("open attachment of %d bytes: %w", resp.ContentLength, channels.ErrTooLarge)
	}
	return channels.Capped(resp.Body, limit), nil
}
