package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/configs"
	"parley/workspace"
)

// Trial is one call of a model that went well.
type Trial struct {
	Answer  string
	Took    time.Duration
	Usage   workspace.Usage
	Offline bool
}

// tryWithin is how long a model may take for one sentence: a local one may have to be loaded first.
const tryWithin = 2 * time.Minute

// Try asks a model for one sentence, with one call. The error is what is wrong and what to do, in one sentence, without the
// credential.
func (m *Models) Try(ctx context.Context, conf configs.Model) (Trial, error) {
	model, err := m.open(conf)
	if err != nil {
		return Trial{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	begun := time.Now()
	res, err := model.Stream(ctx, llm.Request{System: "You are being set up as somebody's assistant.",
		Messages: []llm.Message{{Role: llm.User,
			Content: []workspace.Content{{Kind: workspace.Text, Text: "Say hello in one short sentence."}}}}}, nil)
	if err != nil {
		return Trial{}, sentence(conf, err)
	}
	out := Trial{Took: time.Since(begun), Usage: res.Usage, Offline: conf.API == "offline"}
	for _, c := range res.Content {
		if c.Kind == workspace.Text {
			out.Answer += c.Text
		}
	}
	if out.Answer = strings.TrimSpace(out.Answer); out.Answer == "" {
		return out, errors.New("the model answered without a word: is it one to chat with?")
	}
	return out, nil
}

// sentence says what a failed call means.
func sentence(m configs.Model, err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err
	}
	why := ""
	if e.Err != nil {
		why = ": " + plainly(e.Err).Error()
	}
	if key := m.APIKey.Reveal(); len(key) > 3 {
		why = strings.ReplaceAll(why, key, "[secret]")
	}
	switch {
	case e.Kind == llm.Auth:
		return fmt.Errorf("the key is refused (%d)%s", e.Status, why)
	case e.Kind == llm.Limited:
		return fmt.Errorf("the account's limit is reached, or it has no credit (%d)%s", e.Status, why)
	case e.Kind == llm.Rejected && e.Status == 404:
		return fmt.Errorf("there is no model %s at %s (404)%s", m.Model, m.BaseURL, why)
	case e.Kind == llm.Overload && e.Status == 0:
		return fmt.Errorf("%s is not reached%s", m.BaseURL, why)
	case e.Kind == llm.Cancelled && errors.Is(err, context.DeadlineExceeded), e.Kind == llm.TimedOut:
		return errors.New("no answer came in time")
	}
	return fmt.Errorf("the call failed, %s (%d)%s", e.Kind, e.Status, why)
}
