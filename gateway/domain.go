package gateway

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/gateway/control"
	"parley/gateway/snapshot"
	"parley/workspace"
)

// Bounds of asking a domain's own system.
const (
	handTimeout = 15 * time.Second // of one request
	handAnswer  = 64 << 10         // bytes of its answer that are read
	handTries   = 30 * time.Second // longest pause between two tries
)

// handed is what a domain's own system is told. It decides by its answer, or later by the callback.
type handed struct {
	Approval  string          `json:"approval"`
	Domain    string          `json:"domain"`
	Tool      string          `json:"tool"`
	Shown     string          `json:"shown"`
	Args      json.RawMessage `json:"args"`
	Cwd       string          `json:"cwd,omitempty"`
	Sandbox   string          `json:"sandbox,omitempty"`
	Hash      string          `json:"hash"`
	Requester string          `json:"requester"`
	Role      string          `json:"role"`
	AskedBy   string          `json:"asked_by"` // both, and the name by which the requester goes, in quotes
	Agent     string          `json:"agent"`
	Session   string          `json:"session"`
	RunID     string          `json:"run_id"`
	CallID    string          `json:"call_id"`
	Created   time.Time       `json:"created"`
	Expires   time.Time       `json:"expires_at"`
	Callback  *callback       `json:"callback,omitempty"` // of a webhook
}

// callback is how a system answers later: POST {decision, reason, external_ref} with the token, which is good for this
// one question.
type callback struct {
	Path  string `json:"path"`
	Token string `json:"token"`
}

// handAnswered is what a system answers.
type handAnswered struct {
	Decision string `json:"decision"` // once or deny; empty: it decides later
	Reason   string `json:"reason"`
	External string `json:"external_ref"`
}

func handedOf(ap workspace.Approval) handed {
	return handed{Approval: string(ap.ID), Domain: ap.Domain, Tool: ap.Tool, Shown: ap.Body.Shown, Args: ap.Body.Args, Cwd: ap.Body.Cwd, Sandbox: ap.Body.Sandbox, Hash: ap.Hash,
		Requester: string(ap.Requester), Role: string(ap.Role), AskedBy: workspace.Who(ap.Requester, ap.Role, ap.Body.Asked), Agent: string(ap.Agent), Session: ap.Session, RunID: string(ap.RunID), CallID: ap.CallID,
		Created: ap.Created.UTC(), Expires: ap.Expires.UTC()}
}

// handOver asks a domain's own system, beside everything else. After a restart it is asked again, under the same id.
func (a *approvals) handOver(ap workspace.Approval) {
	d, ok := a.g.snapshot().Domains[ap.Domain]
	if ap.Domain == "" || !ok || !d.Elsewhere {
		return
	}
	a.begin(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, max(0, ap.Expires.Sub(a.g.opt.Now())))
		defer cancel()
		var err error
		if d.Handler == "webhook" {
			err = a.webhook(ctx, d, ap)
		} else {
			err = a.program(ctx, d, ap)
		}
		if err != nil && a.base.Err() == nil {
			a.log.Warn("the system of a domain did not answer", "domain", d.Name, "approval", ap.ID, "err", err)
		}
	})
}

// errRefused is a system that will not take the question, however often it is asked.
var errRefused = errors.New("refused")

// webhook posts a question until somebody takes it, or nobody can answer it any more.
func (a *approvals) webhook(ctx context.Context, d snapshot.Domain, ap workspace.Approval) error {
	h := handedOf(ap)
	h.Callback = &callback{Path: "/v1/approvals/" + string(ap.ID), Token: scopedToken(d.Secret, ap)}
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	for wait := time.Second; ; wait = min(2*wait, handTries) {
		answer, err := a.post(ctx, d, ap, body)
		switch {
		case err == nil && answer.Decision == "":
			return nil // it will call back
		case err == nil:
			return a.answer(ap, answer, "webhook")
		case errors.Is(err, errRefused):
			return errors.Join(err, a.answer(ap, handAnswered{Decision: "deny", Reason: "its system did not take the question"}, "webhook"))
		}
		if !channels.Sleep(ctx, wait) {
			return err
		}
	}
}

// post sends a question once, signed: Parley-Signature: t=<seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">.
func (a *approvals) post(ctx context.Context, d snapshot.Domain, ap workspace.Approval, body []byte) (answer handAnswered, err error) {
	ctx, cancel := context.WithTimeout(ctx, handTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		return answer, fmt.Errorf("%w: %w", errRefused, err)
	}
	at := strconv.FormatInt(a.g.opt.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(d.Secret.Reveal()))
	mac.Write([]byte(at + "." + string(body)))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", string(ap.ID))
	req.Header.Set("Parley-Signature", "t="+at+",v1="+hex.EncodeToString(mac.Sum(nil)))
	client := http.Client{Transport: a.g.http.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return answer, fmt.Errorf("ask the system of %s: %w", d.Name, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, handAnswer))
	switch {
	case err != nil:
		return answer, fmt.Errorf("ask the system of %s: %w", d.Name, err)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout:
		return answer, fmt.Errorf("the system of %s answers %s", d.Name, resp.Status)
	case resp.StatusCode >= 300:
		return answer, fmt.Errorf("the system of %s answers %s: %w", d.Name, resp.Status, errRefused)
	}
	// Many a small program sends its JSON as plain text: what looks like an answer is one.
	if text := bytes.TrimSpace(data); len(text) > 0 && (text[0] == '{' || strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")) {
		if err := json.Unmarshal(data, &answer); err != nil {
			return answer, fmt.Errorf("read the answer of %s: %w: %w", d.Name, errRefused, err)
		}
	}
	return answer, nil
}

// scopedToken lets its bearer answer one question and nothing else.
func scopedToken(secret configs.Secret, ap workspace.Approval) string {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	mac.Write([]byte("parley approval callback\n" + string(ap.ID) + "\n" + ap.Hash))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

const tokenPrefix = "apr_"

// scoped says whether a token is that of a question which a domain's own system decides.
func (g *Gateway) scoped(id, token string) bool {
	if !strings.HasPrefix(token, tokenPrefix) {
		return false
	}
	ap, err := g.store.Approval(workspace.ApprovalID(id))
	if err != nil {
		return false
	}
	d, ok := g.snapshot().Domains[ap.Domain]
	return ok && d.Handler == "webhook" && hmac.Equal([]byte(scopedToken(d.Secret, ap)), []byte(token))
}

// answer takes what a system decided.
func (a *approvals) answer(ap workspace.Approval, h handAnswered, via string) error {
	yes := h.Decision == "once" || h.Decision == "approve"
	if !yes && h.Decision != "deny" {
		a.log.Warn("the system of a domain said something that is neither once nor deny, which is a no", "domain", ap.Domain, "approval", ap.ID, "decision", workspace.Line(h.Decision, 40))
	}
	_, err := a.g.control.ByDomain(ap.ID, yes, via, h.Reason, h.External)
	if errors.Is(err, control.ErrDecided) {
		return nil
	}
	return err
}

// program runs a domain's program with the question on its input; exit code 0 is a yes. The first line that it prints is
// kept: the reason of a no, or its own name for a yes. One that the gateway's end cuts short is asked again.
func (a *approvals) program(ctx context.Context, d snapshot.Domain, ap workspace.Approval) error {
	body, err := json.Marshal(handedOf(ap))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.Command[0], d.Command[1:]...)
	cmd.Env = nil
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ"} { // none of the gateway's secrets
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if cmd.Env == nil {
		cmd.Env = []string{"LANG=C.UTF-8"}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with all that it has started
	cmd.WaitDelay = 2 * time.Second
	cmd.Stdin = bytes.NewReader(body)
	var out capped
	cmd.Stdout = &out
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		err = nil // what it left behind holds its output open; it has answered
	}
	if ctx.Err() != nil {
		return fmt.Errorf("run the program of %s: %w", d.Name, ctx.Err())
	}
	said, _, _ := strings.Cut(strings.TrimSpace(workspace.Visible(string(out.b))), "\n")
	var exit *exec.ExitError
	switch {
	case err == nil:
		return a.answer(ap, handAnswered{Decision: "once", External: said}, "command")
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return a.answer(ap, handAnswered{Decision: "deny", Reason: said}, "command")
	}
	return errors.Join(err, a.answer(ap, handAnswered{Decision: "deny", Reason: "its program could not be run"}, "command"))
}

// capped keeps the first bytes of an output.
type capped struct{ b []byte }

func (c *capped) Write(p []byte) (int, error) {
	if room := handAnswer - len(c.b); room > 0 {
		c.b = append(c.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}
