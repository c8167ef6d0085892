package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/channels"
)

// sendFile uploads one file as a document: Telegram neither looks into it nor changes it. The text becomes its
// caption, of which Telegram takes 1,024 characters.
func (c *Channel) sendFile(ctx context.Context, base params, p channels.Post) (sent, error) {
	if len(p.Files) > 1 {
		return sent{}, bad("%d files in one message: Telegram takes one", len(p.Files))
	}
	file := p.Files[0]
	return c.asMarkup(p, func(text string, markup bool) (sent, error) {
		params := base
		if text != "" {
			params = params.text("caption", text, markup)
		}
		return c.uploadDocument(ctx, params, file)
	})
}

func (c *Channel) uploadDocument(ctx context.Context, base params, file channels.File) (sent, error) {
	if file.Size > maxUpload {
		return sent{}, bad("the file has %d bytes, Telegram takes %d", file.Size, maxUpload)
	}
	f, err := file.Open(ctx)
	if err != nil {
		return sent{}, bad("open the file to send: %v", err)
	}
	defer f.Close() // the SDK closes what it reads only when all went well
	var m sent
	err = c.api.upload(ctx, "sendDocument", base.sdk(), tgbotapi.RequestFile{
		Name: "document",
		Data: tgbotapi.FileReader{Name: file.Name, Reader: io.LimitReader(f, file.Size)},
	}, &m)
	return m, err
}

// remoteFile is https://core.telegram.org/bots/api#file.
type remoteFile struct {
	Path string `json:"file_path"`
	Size int64  `json:"file_size"`
}

// Open opens an attachment. Sizes are checked before anything is fetched, and again while it is read.
func (c *Channel) Open(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	limit := int64(maxDownload)
	if a.Size > limit {
		return nil, fmt.Errorf("open attachment of %d bytes: %w", a.Size, channels.ErrTooLarge)
	}
	if a.Size > 0 {
		limit = a.Size
	}
	var file remoteFile
	err := c.api.request(ctx, "getFile", tgbotapi.Params{"file_id": a.ID}, &file)
	if says(err, "file is too big") {
		return nil, fmt.Errorf("open attachment: %w", channels.ErrTooLarge)
	}
	if err != nil {
		return nil, err
	}
	if file.Size > limit {
		return nil, fmt.Errorf("open attachment: telegram says %d bytes, the message said %d: %w", file.Size, limit, channels.ErrTooLarge)
	}
	// A server in local mode answers with a path on its own disk, which is not for us to read.
	if file.Path == "" || strings.HasPrefix(file.Path, "/") || strings.Contains(file.Path, "..") {
		return nil, errors.New("open attachment: telegram gave no path to download from")
	}
	return c.api.download(ctx, file.Path, limit)
}

// download fetches <base>/file/bot<token>/<path>. The SDK's own link always leads to Telegram.
func (a *api) download(ctx context.Context, path string, limit int64) (io.ReadCloser, error) {
	u := *a.base
	u.Path += "/file/bot" + a.token.Reveal() + "/" + path
	t := &carrier{ctx: ctx, http: a.http}
	resp, err := t.Do(&http.Request{Method: http.MethodGet, URL: &u, Host: u.Host, Header: http.Header{}})
	if err == nil && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		err = errors.New("not the file")
	}
	if err != nil {
		return nil, a.fail("download", t, err)
	}
	if resp.ContentLength > limit {
		resp.Body.Close()
		return nil, fmt.Errorf("download attachment of %d bytes: %w", resp.ContentLength, channels.ErrTooLarge)
	}
	return channels.Capped(resp.Body, limit), nil
}
