package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

func escape(s string) string { return url.PathEscape(s) }

// upload sends files with a message.
func (c *Channel) upload(ctx context.Context, act, method, path string, m outgoing, files []channels.File, into any) error {
	if len(files) > maxFiles {
		return bad("%d files in one message: Discord takes %d", len(files), maxFiles)
	}
	var list []*discordgo.File
	total := int64(0)
	for _, f := range files {
		if total += f.Size; total > maxUpload {
			return bad("the files have %d bytes, Discord takes %d", total, maxUpload)
		}
		opened, err := f.Open(ctx)
		if err != nil {
			return bad("open the file to send: %v", err)
		}
		defer opened.Close()
		list = append(list, &discordgo.File{Name: f.Name, ContentType: f.MIME, Reader: io.LimitReader(opened, f.Size)})
	}
	kind, body, err := discordgo.MultipartBodyWithJSON(m, list)
	if err != nil {
		return bad("encode the files: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	return c.rest.do(ctx, act, method, path, kind, body, into)
}

// attachments are the message's files, and those of what it forwards. Their ids name the message, from which a fresh
// address is fetched: Discord's addresses end after a day.
func (m *message) attachments() []channels.Attachment {
	var all []channels.Attachment
	add := func(list []attachment) {
		for _, a := range list {
			all = append(all, channels.Attachment{ID: m.Channel + "/" + m.ID + "/" + a.ID, Kind: a.kind(m.Flags), Name: a.Name, MIME: a.MIME, Size: a.Size})
		}
	}
	add(m.Attachments)
	for _, s := range m.Snapshots {
		add(s.Message.Attachments)
	}
	return all
}

func (a attachment) kind(flags int) string {
	switch major, _, _ := strings.Cut(a.MIME, "/"); {
	case flags&flagVoice != 0:
		return "voice"
	case major == "image" || major == "audio" || major == "video":
		return major
	}
	return "file"
}

// Open opens an attachment. Sizes are checked before anything is fetched, and again while it is read.
func (c *Channel) Open(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	parts := strings.Split(a.ID, "/")
	if len(parts) != 3 || !idFormat().MatchString(parts[0]) || !idFormat().MatchString(parts[1]) {
		return nil, bad("attachment %q is none of Discord's", a.ID)
	}
	limit := int64(maxFetch)
	if a.Size > limit {
		return nil, fmt.Errorf("open attachment of %d bytes: %w", a.Size, channels.ErrTooLarge)
	}
	if a.Size > 0 {
		limit = a.Size
	}
	var m message
	if err := c.rest.get(ctx, "look at the file's message", "channels/"+parts[0]+"/messages/"+parts[1], &m); err != nil {
		return nil, err
	}
	list := m.Attachments
	for _, s := range m.Snapshots {
		list = append(list, s.Message.Attachments...)
	}
	for _, f := range list {
		if f.ID != parts[2] {
			continue
		}
		if f.Size > limit {
			return nil, fmt.Errorf("open attachment: discord says %d bytes, the message said %d: %w", f.Size, limit, channels.ErrTooLarge)
		}
		return c.rest.download(ctx, f.URL, limit)
	}
	return nil, bad("the file is not in its message any more")
}

// download fetches an address of Discord's file servers, which wants no token and gets none. Another host is asked only
// where the operator put another API in Discord's place.
func (r *rest) download(ctx context.Context, address string, limit int64) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != r.base.Scheme || !r.trusts(u.Hostname()) {
		return nil, bad("the file's address is not on Discord's file servers")
	}
	p := &progress{}
	req, err := http.NewRequestWithContext(p.watch(ctx), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, bad("the file's address cannot be asked for")
	}
	resp, err := r.files.Do(req)
	if err != nil {
		return nil, r.fail("download a file", p, err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // it is not the file
		class := channels.BadMessage
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			class = channels.Retry
		}
		return nil, &channels.Error{Class: class, Err: fmt.Errorf("download a file: status %d", resp.StatusCode)}
	}
	if resp.ContentLength > limit {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("download a file of %d bytes: %w", resp.ContentLength, channels.ErrTooLarge)
	}
	return channels.Capped(bare{resp.Body}, limit), nil
}

func (r *rest) trusts(host string) bool {
	if r.base.Host != "discord.com" {
		return true
	}
	for _, own := range []string{"discordapp.com", "discordapp.net", "discord.com"} {
		if host == own || strings.HasSuffix(host, "."+own) {
			return true
		}
	}
	return false
}

// bare is a download whose errors do not tell its address.
type bare struct{ io.ReadCloser }

func (b bare) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read attachment: %w", plain(err))
	}
	return n, err
}
