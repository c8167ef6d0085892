package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Audio is one request for a transcription as it came in.
type Audio struct {
	N        int // 1 for the first of the server
	Header   http.Header
	Model    string
	Language string
	Name     string // of the file
	MIME     string
	Data     []byte
}

// hearing is the side of the server that transcribes.
type hearing struct {
	script func(*Audio) Reply
	kept   []*Audio
}

// Hear sets what recordings are answered with; Reply.Text is the transcript. Without it they are echoed by their size.
func (s *Server) Hear(script func(*Audio) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hearing.script = script
}

// Heard are the recordings that came, in order of arrival.
func (s *Server) Heard() []*Audio {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hearing.kept)
}

// transcribe answers /audio/transcriptions as OpenAI does: the form must be whole and the file of a known format.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	a, problem := readAudio(r)
	if problem != "" {
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": problem, "type": "invalid_request_error"}})
		sendError(w, Reply{Status: http.StatusBadRequest, ErrorBody: string(body)})
		return
	}
	s.mu.Lock()
	s.hearing.kept = append(s.hearing.kept, a)
	a.N = len(s.hearing.kept)
	script := s.hearing.script
	s.mu.Unlock()
	reply := Reply{Text: fmt.Sprintf("heard %d bytes", len(a.Data))}
	if script != nil {
		reply = script(a)
	}
	if !s.begin(w, r, reply) {
		return
	}
	if reply.Status > 299 {
		sendError(w, reply)
		return
	}
	if reply.Raw == nil {
		body, _ := json.Marshal(map[string]string{"text": reply.Text}) // a string can always be written
		reply.Raw = []string{string(body)}
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone; there is nobody to tell.
	_, _ = io.WriteString(w, strings.Join(reply.Raw, ""))
}

// readAudio reads the form; problem is what OpenAI would say of it.
func readAudio(r *http.Request) (a *Audio, problem string) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, "Could not parse multipart form"
	}
	a = &Audio{Header: r.Header}
	for {
		p, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, "Could not parse multipart form"
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return nil, "Could not parse multipart form"
		}
		if problem := a.part(p, data); problem != "" {
			return nil, problem
		}
	}
	switch {
	case a.Model == "":
		return nil, "you must provide a model parameter"
	case a.Name == "":
		return nil, "field required: file"
	case !slices.Contains([]string{".flac", ".mp3", ".mp4", ".mpeg", ".mpga", ".m4a", ".ogg", ".oga", ".wav", ".webm"}, path.Ext(a.Name)):
		return nil, "Invalid file format. Supported formats: ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']"
	}
	return a, ""
}

func (a *Audio) part(p *multipart.Part, data []byte) (problem string) {
	switch p.FormName() {
	case "model":
		a.Model = string(data)
	case "language":
		a.Language = string(data)
	case "response_format":
		if string(data) != "json" {
			return "response_format '" + string(data) + "' is not compatible"
		}
	case "file":
		a.Name, a.MIME, a.Data = p.FileName(), p.Header.Get("Content-Type"), data
	default:
		return "Unrecognized request argument supplied: " + p.FormName()
	}
	return ""
}
