package gateway

import (
	"sync"
	"sync/atomic"

	"parley/channels"
	"parley/configs"
	"parley/workspace"
)

// Secrets knows every credential of every configuration that was in force since the start, and takes them out of text
// by value (T12, E52). What goes out of the house passes it, and what comes in: logs, answers, transcripts, what tools
// return, the API, the audit log. What was a secret once stays one until the process ends.
type Secrets struct {
	*workspace.Redactor
	current func() *configs.Config
	env     configs.Lookup

	mu    sync.Mutex // held while further ones are gathered
	of    atomic.Pointer[configs.Config]
	token atomic.Bool // the gateway's own was among them
}

// NewSecrets knows the credentials of the configuration in force and, through env, those that stand for one that is
// missing there. It reads nothing yet.
func NewSecrets(current func() *configs.Config, env configs.Lookup) *Secrets {
	return &Secrets{Redactor: workspace.NewRedactor(), current: current, env: env}
}

// Redact is the text with a mask in place of every secret.
func (s *Secrets) Redact(text string) string {
	s.look()
	return s.Redactor.Redact(text)
}

// hidden is an error whose text holds no secret, such as a connection string.
func (s *Secrets) hidden(err error) error { return hiddenError{err, s.Redact(err.Error())} }

type hiddenError struct {
	err  error
	text string
}

func (h hiddenError) Error() string { return h.text }
func (h hiddenError) Unwrap() error { return h.err }

// look gathers secrets when the configuration has changed, and until the gateway's token was made.
func (s *Secrets) look() {
	if c := s.current(); s.of.Load() != c || !s.token.Load() {
		s.gather(c)
	}
}

// gather adds the secrets of a configuration, also of one that is about to come into force: what refuses it may name them.
func (s *Secrets) gather(c *configs.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Add(c.Secrets()...)
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PARLEY_POSTGRES", "PARLEY_TOKEN"} {
		value, _ := s.env(name)
		s.Add(value)
	}
	token, err := Token(c)
	s.Add(token)
	s.of.Store(c)
	s.token.Store(err == nil && token != "")
}

// inbound takes secrets out of all that people wrote or named: what is journalled is what models and transcripts get.
func inbound(r *workspace.Redactor, in channels.Inbound) channels.Inbound {
	in.Text, in.Title, in.From.Name = r.Redact(in.Text), r.Redact(in.Title), r.Redact(in.From.Name)
	in.Data = r.JSON(in.Data)
	in.Attachments = attached(r, in.Attachments)
	if in.Quote != nil {
		q := *in.Quote // the adapter's own
		q.Text, q.From.Name, q.Attachments = r.Redact(q.Text), r.Redact(q.From.Name), attached(r, q.Attachments)
		in.Quote = &q
	}
	return in
}

func attached(r *workspace.Redactor, list []channels.Attachment) []channels.Attachment {
	if len(list) == 0 {
		return list
	}
	out := make([]channels.Attachment, len(list))
	for i, a := range list {
		a.Name = r.Redact(a.Name)
		out[i] = a
	}
	return out
}
