// Systems: domains whose questions a webhook or a program decides.

package approval

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
	"parley/gateway/snapshot"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// How the systems of domains answer, as an approval has it.
const (
	viaWebhook = "webhook"
	viaCommand = "command"
)

// Bounds of asking a domain's own system.
const (
	systemTimeout   = 15 * time.Second // of one request
	maxSystemAnswer = 64 << 10         // bytes of its answer that are read
	systemPause     = 30 * time.Second // longest pause between two tries
)

// systemQuestion is what a domain's own system is told. It decides by its answer, or later by the callback.
type systemQuestion struct {
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

// systemAnswer is what a system answers.
type systemAnswer struct {
	Decision workspace.Choice `json:"decision"` // once or deny; empty: it decides later
	Reason   string           `json:"reason"`
	External string           `json:"external_ref"`
}

func systemQuestionOf(ap workspace.Approval) systemQuestion {
	return systemQuestion{Approval: string(ap.ID), Domain: ap.Domain, Tool: ap.Tool, Shown: ap.Body.Shown, Args: ap.Body.Args,
		Cwd: ap.Body.Cwd, Sandbox: ap.Body.Sandbox, Hash: ap.Hash, Requester: string(ap.Requester), Role: string(ap.Role),
		AskedBy: workspace.Who(ap.Requester, ap.Role, ap.Body.Asked), Agent: string(ap.Agent), Session: ap.Session, RunID: string(ap.RunID),
		CallID: ap.CallID, Created: ap.Created.UTC(), Expires: ap.Expires.UTC()}
}

// askSystem asks a domain's own system, in a goroutine of its own. After a restart it is asked again, under the same id.
func (q *Questions) askSystem(ap workspace.Approval) {
	d, ok := q.Domains()[ap.Domain]
	if ap.Domain == "" || !ok || !d.Elsewhere {
		return
	}
	q.begin(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, max(0, ap.Expires.Sub(q.opt.Now())))
		defer cancel()
		var err error
		if d.Handler == "webhook" {
			err = q.webhook(ctx, d, ap)
		} else {
			err = q.program(ctx, d, ap)
		}
		if err != nil && q.base.Err() == nil {
			q.opt.Log.Warn("domain system did not answer", "domain", d.Name, "approval", ap.ID, "err", err)
		}
	})
}

// errRefused is a system that will not take the question, however often it is asked.
var errRefused = errors.New("refused")

// webhook posts a question until somebody takes it, or nobody can answer it any more.
func (q *Questions) webhook(ctx context.Context, d snapshot.Domain, ap workspace.Approval) error {
	h := systemQuestionOf(ap)
	h.Callback = &callback{Path: "/v1/approvals/" + string(ap.ID), Token: scopedToken(d.Secret, ap)}
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	for wait := time.Second; ; wait = min(2*wait, systemPause) {
		answer, err := q.post(ctx, d, ap, body)
		switch {
		case err == nil && answer.Decision == "":
			return nil // it will call back
		case err == nil:
			return q.systemDecided(ap, answer, viaWebhook)
		case errors.Is(err, errRefused):
			no := systemAnswer{Decision: workspace.ChooseDeny, Reason: "its system did not take the question"}
			return errors.Join(err, q.systemDecided(ap, no, viaWebhook))
		}
		if !channels.Sleep(ctx, wait) {
			return err
		}
	}
}

// post sends a question once, signed: Parley-Signature: t=<seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">.
func (q *Questions) post(ctx context.Context, d snapshot.Domain, ap workspace.Approval, body []byte) (answer systemAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, systemTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		return answer, fmt.Errorf("%w: %w", errRefused, err)
	}
	at := strconv.FormatInt(q.opt.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(d.Secret.Reveal()))
	mac.Write([]byte(at + "." + string(body)))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", string(ap.ID))
	req.Header.Set("Parley-Signature", "t="+at+",v1="+hex.EncodeToString(mac.Sum(nil)))
	client := http.Client{Transport: q.opt.Systems, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, err := client.Do(req)
	if err != nil {
		return answer, fmt.Errorf("ask the system of %s: %w", d.Name, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxSystemAnswer))
	switch {
	case err != nil:
		return answer, fmt.Errorf("ask the system of %s: %w", d.Name, err)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout:
		return answer, fmt.Errorf("the system of %s answers %s", d.Name, resp.Status)
	case resp.StatusCode >= 300:
		return answer, fmt.Errorf("the system of %s answers %s: %w", d.Name, resp.Status, errRefused)
	}
	// Many a small program sends its JSON as plain text: what looks like an answer is one.
	text, isJSON := bytes.TrimSpace(data), strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
	if len(text) > 0 && (text[0] == '{' || isJSON) {
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

// Scoped says whether a token is that of a question which a domain's own system decides.
func (q *Questions) Scoped(id, token string) bool {
	if !strings.HasPrefix(token, tokenPrefix) {
		return false
	}
	ap, err := q.opt.Store.Approval(workspace.ApprovalID(id))
	if err != nil {
		return false
	}
	d, ok := q.Domains()[ap.Domain]
	return ok && d.Handler == "webhook" && hmac.Equal([]byte(scopedToken(d.Secret, ap)), []byte(token))
}

// systemDecided takes what a system decided.
func (q *Questions) systemDecided(ap workspace.Approval, h systemAnswer, via string) error {
	yes := h.Decision == workspace.ChooseOnce || h.Decision == "approve"
	if !yes && h.Decision != workspace.ChooseDeny {
		q.opt.Log.Warn("domain system answered neither once nor deny, which is a no", "domain", ap.Domain, "approval", ap.ID,
			"decision", workspace.Line(string(h.Decision), 40))
	}
	_, err := q.decideBySystem(ap.ID, yes, via, h.Reason, h.External)
	if errors.Is(err, workspace.ErrDecided) {
		return nil
	}
	return err
}

// Callback takes the answer that a domain's own system gives by the token of one question; workspace.ErrDecided means that it
// comes too late.
func (q *Questions) Callback(id workspace.ApprovalID, yes bool, reason, external string) (workspace.Approval, error) {
	return q.decideBySystem(id, yes, viaWebhook, reason, external)
}

// decideBySystem takes the answer of a domain's own system, which has proven itself.
func (q *Questions) decideBySystem(id workspace.ApprovalID, yes bool, via, reason, external string) (workspace.Approval, error) {
	ap, err := q.opt.Store.Approval(id)
	if err != nil {
		return ap, workspace.Say(err, "There is no such approval.")
	}
	if d, ok := q.Domains()[ap.Domain]; !ok || !d.Elsewhere {
		return ap, workspace.Say(workspace.ErrDenied, "That is not decided by a system.")
	}
	if ap, err = q.Current(ap); err != nil {
		return ap, err
	}
	v := store.Verdict{ID: id, To: workspace.ApprovalDenied, Via: via, Reason: clip.Runes(reason, MaxReason),
		External: clip.Runes(external, MaxReason)}
	if yes {
		v.To, v.Grant, v.Reason = workspace.ApprovalApproved, workspace.Once, ""
	}
	now, _, err := q.opt.Store.Decide(v)
	if errors.Is(err, workspace.ErrConflict) {
		return now, q.TooLate(now)
	}
	if err == nil {
		q.Resolved(now)
	}
	return now, err
}

// program runs a domain's program with the question on its input; exit code 0 is a yes. The first line that it prints is
// kept: the reason of a no, or its own name for a yes. One that the gateway's end cuts short is asked again.
func (q *Questions) program(ctx context.Context, d snapshot.Domain, ap workspace.Approval) error {
	body, err := json.Marshal(systemQuestionOf(ap))
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
		return q.systemDecided(ap, systemAnswer{Decision: workspace.ChooseOnce, External: said}, viaCommand)
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return q.systemDecided(ap, systemAnswer{Decision: workspace.ChooseDeny, Reason: said}, viaCommand)
	}
	no := systemAnswer{Decision: workspace.ChooseDeny, Reason: "its program could not be run"}
	return errors.Join(err, q.systemDecided(ap, no, viaCommand))
}

// capped keeps the first bytes of an output.
type capped struct{ b []byte }

func (c *capped) Write(p []byte) (int, error) {
	if room := maxSystemAnswer - len(c.b); room > 0 {
		c.b = append(c.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}
