package slacktest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxUpload is the largest file, in bytes (https://docs.slack.dev/messaging/working-with-files).
const maxUpload = 1 << 30

// ticket is an upload URL.
type ticket struct{ file *File }

// signInPage is what url_private gives to whoever comes without the token: a page with status 200, not an error.
const signInPage = "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your workspace</body></html>"

func (s *Server) wireFile(f *File, shares bool) reply {
	size := f.Size
	if size == 0 {
		size = len(f.Data)
	}
	u := s.URL() + "/files-pri/" + f.Team + "-" + f.ID + "/"
	out := reply{"id": f.ID, "name": f.Name, "title": f.Title, "mimetype": f.MIME, "filetype": strings.TrimPrefix(path.Ext(f.Name), "."),
		"user": f.User, "size": size, "mode": "hosted", "is_external": false, "is_public": false, "created": 1700000000,
		"url_private": u + f.Name, "url_private_download": u + "download/" + f.Name}
	if !shares {
		return out
	}
	public, private, channels := map[string][]reply{}, map[string][]reply{}, []string{}
	for _, sh := range f.shares {
		one := reply{"ts": sh.ts, "team_id": f.Team}
		channels = append(channels, sh.channel)
		if sh.private {
			private[sh.channel] = append(private[sh.channel], one)
		} else {
			public[sh.channel] = append(public[sh.channel], one)
		}
	}
	out["shares"], out["channels"] = reply{"public": public, "private": private}, channels
	return out
}

func fileInfo(c *call) (reply, *failure) {
	f := c.s.files[c.get("file")]
	if f == nil || f.Team != c.team.ID || !f.uploaded {
		return nil, fail("file_not_found")
	}
	f.looked++
	return reply{"file": c.s.wireFile(f, f.looked > c.s.opts.SlowShares), "comments": []any{}, "content_html": nil}, nil
}

func fileDelete(c *call) (reply, *failure) {
	f := c.s.files[c.get("file")]
	if f == nil || f.Team != c.team.ID {
		return nil, fail("file_not_found")
	}
	if f.User != c.team.Bot.ID {
		return nil, fail("cant_delete_file")
	}
	delete(c.s.files, f.ID)
	return nil, nil
}

func uploadURL(c *call) (reply, *failure) {
	name, size := c.get("filename"), c.int("length", 0)
	if name == "" || size <= 0 {
		return nil, fail("invalid_arguments", "missing required field: filename or length")
	}
	if size > maxUpload {
		return nil, fail("file_upload_size_restricted")
	}
	kind := mime.TypeByExtension(path.Ext(name))
	f := &File{ID: c.s.id("F"), Name: name, Title: name, MIME: kind, User: c.team.Bot.ID, Team: c.team.ID, Size: size}
	c.s.files[f.ID] = f
	secret := c.s.id("CwABAAAA")
	c.s.tickets[secret] = &ticket{f}
	return reply{"upload_url": c.s.URL() + "/upload/v1/" + secret, "file_id": f.ID}, nil
}

// serveUpload takes the bytes, raw or as a form, and answers in plain text.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	hit := s.faults.Take("upload")
	if !hit.Before(r, func(f Fault) { s.answerFault(w, f) }) {
		return
	}
	data, err := uploaded(r)
	if err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	t := s.tickets[path.Base(r.URL.Path)]
	known := t != nil && len(data) == t.file.Size
	if known {
		t.file.Data, t.file.uploaded = data, true
		if t.file.MIME == "" {
			t.file.MIME = http.DetectContentType(data)
		}
	}
	s.mu.Unlock()
	hit.After(w, []byte(someAnswer))
	if !known {
		http.Error(w, "upload failed", http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(data))) // the client may be gone
}

func uploaded(r *http.Request) ([]byte, error) {
	mr, err := r.MultipartReader()
	if err != nil {
		return io.ReadAll(io.LimitReader(r.Body, maxUpload))
	}
	for {
		part, err := mr.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			return io.ReadAll(io.LimitReader(part, maxUpload))
		}
	}
}

func uploadComplete(c *call) (reply, *failure) {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(c.get("files")), &list) != nil || len(list) == 0 {
		return nil, fail("invalid_arguments", "missing required field: files")
	}
	var files []*File
	out := []reply{}
	for _, l := range list {
		f := c.s.files[l.ID]
		if f == nil || !f.uploaded || f.done {
			return nil, fail("file_not_found")
		}
		if l.Title != "" {
			f.Title = l.Title
		}
		files = append(files, f)
		out = append(out, reply{"id": f.ID, "title": f.Title})
	}
	targets := strings.FieldsFunc(c.get("channels"), func(r rune) bool { return r == ',' })
	if id := c.get("channel_id"); id != "" {
		targets = append(targets, id)
	}
	var places []*Channel
	for _, id := range targets {
		c.args["channel"] = id
		ch, bad := c.place("channel", true)
		if bad != nil {
			return nil, bad
		}
		places = append(places, ch)
	}
	for _, ch := range places {
		if bad := c.share(ch, files); bad != nil {
			return nil, bad
		}
	}
	for _, f := range files {
		f.done = true
	}
	return reply{"files": out}, nil
}

func (c *call) share(ch *Channel, files []*File) *failure {
	m := c.own(ch)
	m.Subtype, m.Text = "file_share", c.get("initial_comment")
	if raw := c.get("blocks"); raw != "" && m.Text == "" {
		blocks, bad := checkBlocks(raw)
		if bad != nil {
			return bad
		}
		m.Blocks = blocks
	}
	if bad := c.inThread(ch, m); bad != nil {
		return bad
	}
	for _, f := range files {
		m.Files = append(m.Files, *f)
	}
	c.put(ch, m)
	for _, f := range files {
		f.shares = append(f.shares, share{ch.ID, m.TS, ch.Kind != Public})
	}
	return nil
}

// serveFile gives the bytes of url_private to whoever shows the workspace's token.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	hit := s.faults.Take("download")
	if !hit.Before(r, func(f Fault) { s.answerFault(w, f) }) {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/files-pri/"), "/")
	team, id, _ := strings.Cut(parts[0], "-")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	file := s.files[id]
	t := s.team(team)
	allowed := t != nil && token == t.Token && t.refused == "" && slices.Contains(t.Scopes, "files:read")
	s.mu.Unlock()
	switch {
	case !allowed:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, signInPage) // the client may be gone
	case file == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", file.MIME)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.Data))
	}
}
