package gateway

import (
	"sync"
	"sync/atomic"

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
