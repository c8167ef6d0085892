package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// Limits of a transcription.
const (
	transcribeTries = 3
	transcribeTime  = 90 * time.Second // of one try
	transcribePause = time.Second      // before the second try, and twice that before the third
	longestPause    = 20 * time.Second // a longer Retry-After is a failure
	maxTranscript   = 256 << 10        // bytes of the answer
)

// TranscriberOptions of NewTranscriber.
type TranscriberOptions struct {
	Model    string
	BaseURL  string // with its /v1
	APIKey   string
	Language string // ISO 639-1; empty: the server finds out
	HTTP     *http.Client
	Timeout  time.Duration // of one try; 0: 90 s
	Pause    time.Duration // before the second try; 0: 1 s
}

// Transcriber turns recordings into text at a server that has OpenAI's /audio/transcriptions
// (https://platform.openai.com/docs/api-reference/audio/createTranscription). It is safe for concurrent use.
type Transcriber struct {
	o        TranscriberOptions
	client   wire.Client
	endpoint string
}

// NewTranscriber checks the options; it does no IO.
func NewTranscriber(o TranscriberOptions) (*Transcriber, error) {
	if o.Model == "" {
		return nil, errors.New("model is empty")
	}
	u, err := wire.ParseBase(o.BaseURL, o.APIKey, baseForm)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = transcribeTime
	}
	if o.Pause <= 0 {
		o.Pause = transcribePause
	}
	return &Transcriber{o: o, endpoint: u.JoinPath("audio/transcriptions").String(),
		client: wire.Client{HTTP: wire.Bare(o.HTTP), Key: o.APIKey, Refused: refused}}, nil
}

// Transcribe returns what is said in a recording, which may be nothing. By the extension of name the server knows the
// format. What may pass (a limit, an overload, a cut) is tried three times. The error is an *llm.Error.
func (t *Transcriber) Transcribe(ctx context.Context, name, mime string, sound io.ReadSeeker) (string, error) {
	for try := 1; ; try++ {
		text, err := t.once(ctx, name, mime, sound)
		if err == nil {
			return text, nil
		}
		var e *llm.Error
		if err := wire.Finish(ctx, llm.Info{Name: t.o.Model}, err); !errors.As(err, &e) || try == transcribeTries || !passing(e.Kind) {
			return "", err
		}
		wait := max(t.o.Pause<<(try-1), e.After)
		if wait > longestPause {
			return "", e
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", wire.Finish(ctx, llm.Info{Name: t.o.Model}, e)
		}
	}
}

func passing(k llm.Kind) bool {
	return k == llm.Limited || k == llm.Overload || k == llm.Cut || k == llm.TimedOut
}

func (t *Transcriber) once(ctx context.Context, name, mime string, sound io.ReadSeeker) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	size, err := sound.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = sound.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", fmt.Errorf("read the recording: %w", err)
	}
	head, tail, form, err := t.form(name, mime)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, io.MultiReader(bytes.NewReader(head), io.LimitReader(sound, size), bytes.NewReader(tail)))
	if err != nil {
		return "", errors.New("base_url cannot be used")
	}
	req.ContentLength = int64(len(head)) + size + int64(len(tail))
	req.Header = http.Header{"Content-Type": {form}, "Accept": {"application/json"}}
	if t.o.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+t.o.APIKey)
	}
	resp, err := t.client.HTTP.Do(req)
	if err != nil {
		return "", t.late(ctx, t.client.Unreached(context.Cause(ctx), err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", t.client.Failed(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTranscript+1))
	if err != nil {
		return "", t.late(ctx, &llm.Error{Kind: llm.Cut, Err: t.client.Said(err.Error())})
	}
	var said struct {
		Text *string `json:"text"`
	}
	if len(body) > maxTranscript || json.Unmarshal(body, &said) != nil || said.Text == nil {
		return "", &llm.Error{Kind: llm.Malformed, Status: resp.StatusCode, Err: errors.New("the answer holds no text")}
	}
	return strings.TrimSpace(strings.ToValidUTF8(*said.Text, "\uFFFD")), nil
}

// late tells a try that took too long from a server that cannot be reached.
func (t *Transcriber) late(ctx context.Context, e *llm.Error) *llm.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Kind = llm.TimedOut
	}
	return e
}

// form is what stands before and behind the recording in the body, and its Content-Type.
func (t *Transcriber) form(name, mime string) (head, tail []byte, contentType string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	fields := [][2]string{{"model", t.o.Model}, {"response_format", "json"}}
	if t.o.Language != "" {
		fields = append(fields, [2]string{"language", t.o.Language})
	}
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return nil, nil, "", err
		}
	}
	_, err = w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {multipart.FileContentDisposition("file", name)}, "Content-Type": {mime}})
	if err != nil {
		return nil, nil, "", err
	}
	head = bytes.Clone(b.Bytes())
	if err := w.Close(); err != nil {
		return nil, nil, "", err
	}
	return head, b.Bytes()[len(head):], w.FormDataContentType(), nil
}
