package whatsapp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // for the size of a picture
	_ "image/png"  // likewise
	"io"
	"os"
	"strings"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"

	"parley/channels"
)

const (
	maxDownload = 64 << 20 // bytes of a file whose size nobody said
	maxInline   = 16 << 20 // bytes of what is shown in the chat; WhatsApp takes larger files as documents
	overhead    = 64       // bytes by which an encrypted file is larger, at most
	headSize    = 64 << 10 // bytes of a picture in which its size is looked for
)

// Open opens an attachment: it is downloaded, held to its announced size, and decrypted into a file that has no name any
// more.
func (c *Channel) Open(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	s, err := c.connected()
	if err != nil {
		return nil, err
	}
	r, err := s.v.seal.open(a.ID)
	if err != nil || !strings.HasPrefix(r.Path, "/") {
		return nil, bad("open attachment: it is none of this channel's")
	}
	most := int64(maxDownload)
	for _, said := range []int64{a.Size, r.Size} {
		if said > 0 {
			most = min(most, said)
		}
	}
	if max(a.Size, r.Size) > maxDownload {
		return nil, fmt.Errorf("open attachment of %d bytes: %w", max(a.Size, r.Size), channels.ErrTooLarge)
	}
	if !s.enter() {
		return nil, &channels.Error{Class: channels.Retry, Err: errors.New("whatsapp is not connected")}
	}
	defer s.busy.Done()
	f, err := os.CreateTemp(c.keep.dir, ".wa-file-*")
	if err != nil {
		return nil, fmt.Errorf("open attachment: %w", err)
	}
	_ = os.Remove(f.Name()) // where a file cannot lose its name while it is open, it goes with Close
	got := &unnamed{f}
	err = s.cli.DownloadToFile(context.WithValue(ctx, mostKey{}, most+overhead), r, f)
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil && info.Size() > most {
			err = channels.ErrTooLarge
		}
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		got.Close()
		return nil, openError(err)
	}
	return got, nil
}

// unnamed is a temporary file that goes with its Close.
type unnamed struct{ *os.File }

func (u *unnamed) Close() error {
	err := u.File.Close()
	_ = os.Remove(u.Name()) // gone already, mostly
	return err
}

func openError(err error) error {
	var http whatsmeow.DownloadHTTPError
	if errors.As(err, &http) && http.Response != nil {
		switch http.Response.StatusCode {
		case 413:
			return fmt.Errorf("open attachment: %w", channels.ErrTooLarge)
		case 403, 404, 410:
			return bad("open attachment: WhatsApp does not have the file any more")
		}
	}
	for _, wrong := range []error{whatsmeow.ErrInvalidMediaHMAC, whatsmeow.ErrInvalidMediaEncSHA256, whatsmeow.ErrInvalidMediaSHA256, whatsmeow.ErrTooShortFile} {
		if errors.Is(err, wrong) {
			return bad("open attachment: %v", wrong)
		}
	}
	if errors.Is(err, channels.ErrTooLarge) {
		return fmt.Errorf("open attachment: %w", channels.ErrTooLarge)
	}
	return classify("download", err)
}

// composeFile uploads a file and makes its message. Pictures, films and recordings of the usual kinds are shown in the
// chat, the rest are documents, which keep their names.
func (s *session) composeFile(ctx context.Context, file channels.File, text string, info *waE2E.ContextInfo) (*waE2E.Message, error) {
	if file.Size > maxUpload {
		return nil, bad("the file has %d bytes, %d are taken", file.Size, maxUpload)
	}
	f, err := file.Open(ctx)
	if err != nil {
		return nil, bad("open the file to send: %v", err)
	}
	defer f.Close()
	from := bufio.NewReaderSize(io.LimitReader(f, file.Size), headSize)
	head, err := from.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, bad("read the file to send: %v", err)
	}
	mime := mimeOf(file.MIME, "application/octet-stream")
	kind := kindOf(mime, file.Size, text)
	width, height := sizeOf(head) // before the upload, which reads over them
	up, err := s.upload(ctx, from, kind)
	if err != nil {
		return nil, err
	}
	var caption *string
	if text != "" {
		caption = &text
	}
	switch kind {
	case whatsmeow.MediaImage:
		m := &waE2E.ImageMessage{URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
			FileLength: &up.FileLength, Mimetype: &mime, Caption: caption, ContextInfo: info}
		if width > 0 {
			m.Width, m.Height = proto.Uint32(width), proto.Uint32(height)
		}
		return &waE2E.Message{ImageMessage: m}, nil
	case whatsmeow.MediaVideo:
		return &waE2E.Message{VideoMessage: &waE2E.VideoMessage{URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256,
			FileSHA256: up.FileSHA256, FileLength: &up.FileLength, Mimetype: &mime, Caption: caption, ContextInfo: info}}, nil
	case whatsmeow.MediaAudio:
		m := &waE2E.AudioMessage{URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256,
			FileLength: &up.FileLength, Mimetype: &mime, ContextInfo: info}
		if mime == "audio/ogg" { // a voice note, whose codec phones want to read
			m.PTT, m.Mimetype = proto.Bool(true), proto.String("audio/ogg; codecs=opus")
		}
		return &waE2E.Message{AudioMessage: m}, nil
	}
	doc := &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256,
		FileSHA256: up.FileSHA256, FileLength: &up.FileLength, Mimetype: &mime, Title: &file.Name, FileName: &file.Name, Caption: caption, ContextInfo: info}}
	if caption == nil {
		return doc, nil
	}
	return &waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{Message: doc}}, nil
}

// kindOf is how a file is shown. A recording has no caption on WhatsApp.
func kindOf(mime string, size int64, text string) whatsmeow.MediaType {
	switch {
	case size > maxInline:
	case mime == "image/jpeg", mime == "image/png":
		return whatsmeow.MediaImage
	case mime == "video/mp4":
		return whatsmeow.MediaVideo
	case text == "" && (mime == "audio/ogg" || mime == "audio/mpeg" || mime == "audio/mp4" || mime == "audio/aac"):
		return whatsmeow.MediaAudio
	}
	return whatsmeow.MediaDocument
}

// upload encrypts into a file beside our own, so that no file is held in memory.
func (s *session) upload(ctx context.Context, from io.Reader, kind whatsmeow.MediaType) (whatsmeow.UploadResponse, error) {
	if !s.enter() {
		return whatsmeow.UploadResponse{}, &channels.Error{Class: channels.Retry, Err: errors.New("whatsapp is not connected")}
	}
	defer s.busy.Done()
	tmp, err := os.CreateTemp(s.c.keep.dir, ".wa-file-*")
	if err != nil {
		return whatsmeow.UploadResponse{}, &channels.Error{Class: channels.Retry, Err: err}
	}
	_ = os.Remove(tmp.Name()) // as in Open
	held := &unnamed{tmp}
	defer held.Close()
	up, err := s.cli.UploadReader(ctx, from, tmp, kind)
	if err != nil { // the message was not even made
		return up, &channels.Error{Class: channels.Retry, Err: fmt.Errorf("whatsapp upload: %s", mask(err.Error()))}
	}
	return up, nil
}

// sizeOf is the width and height of a picture that begins so; 0: it cannot be read as one.
func sizeOf(head []byte) (w, h uint32) {
	c, _, err := image.DecodeConfig(bytes.NewReader(head))
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return 0, 0
	}
	return uint32(c.Width), uint32(c.Height)
}
