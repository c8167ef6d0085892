package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"

	"parley/workspace"
	"parley/workspace/rule"
)

// Asker is a Tool that knows more of a call than its name and arguments when a person is to be asked about it: where
// it would run, and under what. Tools without it are asked about by name and arguments (QuestionFor).
type Asker interface {
	// Question describes the call as it would run now. It is asked for twice, before the question and again before the
	// approved call runs: what differs then was not approved. It changes nothing. An error refuses the call; the model
	// is told its sentence (workspace.Say), or that it cannot be asked about.
	Question(ctx context.Context, c Call) (Question, error)
}

// Question is one exact tool call, as a person is asked about it. All of it up to Sandbox, but Shown, is under the hash.
type Question struct {
	Shown   string          // the whole of what would be done, as plain text; never shortened
	Args    json.RawMessage // as they would be used; a JSON object
	Cwd     string          // where it would run; empty: nowhere in particular
	Env     []string        // NAME=value, what the call adds to the environment; sorted
	Sandbox string          // names the profile it would run under, with its settings; empty: none
	// Rule is what a command may be allowed as for a session; nil: only this once.
	Rule    *rule.Command
	Dangers []rule.Danger // what a person should look at first
}

// QuestionFor is what a tool is asked about: its own Question where it has one, else its name and arguments.
func QuestionFor(ctx context.Context, t Tool, c Call) (Question, error) {
	if a, ok := t.(Asker); ok {
		return a.Question(ctx, c)
	}
	var v any
	if err := json.Unmarshal(c.Args, &v); err != nil {
		return Question{}, fmt.Errorf("read the arguments: %w", err)
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return Question{}, fmt.Errorf("write the arguments: %w", err)
	}
	return Question{Shown: t.Spec().Name + " " + string(text), Args: c.Args}, nil
}

// Hash binds an approval to one exact call: the SHA-256, in hex, of the RFC 8785 form of all that decides what the call
// does and for whom. session is its key, requester the person whose rights hold. The error is of arguments that are no
// JSON, or not one that RFC 8785 knows.
func Hash(q Question, tool string, session workspace.Key, requester workspace.PersonID) (string, error) {
	env := q.Env
	if env == nil {
		env = []string{}
	}
	args := q.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	text, err := json.Marshal(struct {
		Tool      string          `json:"tool"`
		Args      json.RawMessage `json:"args"`
		Cwd       string          `json:"cwd"`
		Env       []string        `json:"env"`
		Sandbox   string          `json:"sandbox"`
		Session   string          `json:"session"`
		Requester string          `json:"requester"`
	}{tool, args, q.Cwd, env, q.Sandbox, session.String(), string(requester)})
	if err != nil {
		return "", fmt.Errorf("hash a call: %w", err)
	}
	canonical, err := jcs.Transform(text)
	if err != nil {
		return "", fmt.Errorf("hash a call: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
