package slack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf16"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const (
	metaType   = "parley_message" // of our metadata, by which a message is found again
	metaToken  = "token"
	noticeMost = 3900 // characters of the text that stands in for blocks; chat.update takes 4,000

	// answeredPrefix begins the ids of answers through a response_url, of which Slack tells none. They can be neither edited
	// nor found.
	answeredPrefix = "response:"
)

// Send sends one message: a text, with buttons or not, a file with the text as its comment, or the answer to a command
// through its response_url.
func (c *Channel) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	if n := len(utf16.Encode([]rune(p.Text))); n > maxText {
		return "", bad("the text has %d units, Slack takes %d", n, maxText)
	}
	switch {
	case len(p.Files) > 0:
		return c.sendFile(ctx, p)
	case p.Handle.Secret != "":
		return c.respond(ctx, p)
	case p.Text == "":
		return "", bad("the message is empty")
	}
	body, err := c.content(p)
	if err != nil {
		return "", err
	}
	thread := threadOf(p)
	id, err := c.postMessage(ctx, p, body, thread)
	if c.unread(err) {
		if body, err = older(p); err != nil {
			return "", err
		}
		id, err = c.postMessage(ctx, p, body, thread)
	}
	if says(err, "duplicate_message_not_found", "duplicate_client_msg_id") {
		return c.resolveDuplicate(ctx, p, body, thread, err)
	}
	if thread != "" && p.To.Thread == "" && says(err, "thread_not_found", "message_not_found") {
		return c.postMessage(ctx, p, body, "") // a deleted question must not cost the answer
	}
	return id, err
}

// resolveDuplicate is a post that Slack took for one that it has: it is looked for and given this text, since what was sent may have
// been the begin of it. It is sent under no id of Parley's when somebody has deleted it since.
func (c *Channel) resolveDuplicate(ctx context.Context, p channels.Post, body []slackgo.MsgOption, thread string, refusal error) (channels.MessageID, error) {
	id, found, sure, err := c.Find(ctx, p, time.Time{})
	switch {
	case err != nil:
		return "", err
	case found:
		return id, c.Edit(ctx, id, p)
	case !sure:
		return "", refusal
	}
	body = append(body, stamped(p.Token))
	p.Token = ""
	return c.postMessage(ctx, p, body, thread)
}

func (c *Channel) postMessage(ctx context.Context, p channels.Post, body []slackgo.MsgOption, thread string) (id channels.MessageID, err error) {
	options := append([]slackgo.MsgOption{slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl()}, body...)
	if thread != "" {
		options = append(options, slackgo.MsgOptionTS(thread))
	}
	if p.Token != "" {
		options = append(options, stamped(p.Token), slackgo.UnsafeMsgOptionEndpoint(c.base.String()+"chat.postMessage", func(v url.Values) {
			v.Set("client_msg_id", uuidOf(p.Token)) // no document promises anything for it; the metadata is what counts
		}))
	}
	err = c.do(ctx, "chat.postMessage", func(ctx context.Context, api *slackgo.Client) error {
		_, ts, err := api.PostMessageContext(ctx, string(p.To.Peer), options...)
		if err == nil && ts == "" {
			err = errors.New("answered without a ts")
		}
		id = channels.MessageID(ts)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

func stamped(token string) slackgo.MsgOption {
	return slackgo.MsgOptionMetadata(slackgo.SlackMetadata{EventType: metaType, EventPayload: map[string]any{metaToken: token}})
}

// uuidOf is a UUID (RFC 9562, version 8) of a token.
func uuidOf(token string) string {
	h := sha256.Sum256([]byte("parley " + token))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// threadOf is where an answer goes: into its thread, or in a room into the thread of what it answers. Direct messages and
// small groups stay flat.
func threadOf(p channels.Post) string {
	if p.To.Thread == "" && p.To.Kind == channels.Room && !timeOf(string(p.ReplyTo)).IsZero() {
		return string(p.ReplyTo)
	}
	return string(p.To.Thread)
}

// Edit replaces the text and the buttons of a message: without Actions it has none afterwards.
func (c *Channel) Edit(ctx context.Context, id channels.MessageID, p channels.Post) error {
	if strings.HasPrefix(string(id), answeredPrefix) {
		return bad("the answer to a command cannot be edited")
	}
	if p.Text == "" {
		return bad("the message is empty")
	}
	if n := len(utf16.Encode([]rune(p.Text))); n > maxText {
		return bad("the text has %d units, Slack takes %d", n, maxText)
	}
	body, err := c.inBlocks(p)
	if err != nil {
		return err
	}
	if p.Token != "" {
		body = append(body, stamped(p.Token))
	}
	update := func(ctx context.Context, api *slackgo.Client) error {
		_, _, _, err := api.UpdateMessageContext(ctx, string(p.To.Peer), string(id), body...)
		return err
	}
	err = c.do(ctx, "chat.update", update)
	if c.unread(err) {
		if body, err = older(p); err != nil {
			return err
		}
		if p.Token != "" {
			body = append(body, stamped(p.Token))
		}
		err = c.do(ctx, "chat.update", update)
	}
	if says(err, "streaming_state_conflict") { // a stream of an earlier process
		if err := c.stopStream(ctx, p.To.Peer, id, ""); err != nil {
			return err
		}
		err = c.do(ctx, "chat.update", update)
	}
	return err
}

// Delete removes a message of Parley's. What is gone is gone.
func (c *Channel) Delete(ctx context.Context, to channels.Address, id channels.MessageID) error {
	err := c.do(ctx, "chat.delete", func(ctx context.Context, api *slackgo.Client) error {
		_, _, err := api.DeleteMessageContext(ctx, string(to.Peer), string(id))
		return err
	})
	if says(err, "message_not_found") {
		return nil
	}
	return err
}

// ours says whether an address is Slack's own, or that of the configured API: nothing else is posted to.
func (c *Channel) ours(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	slacks := host == "slack.com" || strings.HasSuffix(host, ".slack.com") || host == "slack-gov.com" || strings.HasSuffix(host, ".slack-gov.com")
	return u.Scheme == "https" && slacks || u.Scheme == c.base.Scheme && strings.EqualFold(u.Host, c.base.Host)
}

// respond answers through a response_url: to one person, or in the room.
func (c *Channel) respond(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	if !c.ours(p.Handle.Secret) {
		return "", bad("the handle is not an address of Slack")
	}
	if p.Text == "" {
		return "", bad("the message is empty")
	}
	blocks, err := blocksOf(p)
	if err != nil {
		return "", err
	}
	said := map[string]any{"text": notice(p), "blocks": blocks, "response_type": "in_channel", "replace_original": false}
	if p.Private {
		said["response_type"] = "ephemeral"
	}
	body, err := json.Marshal(said)
	if err != nil {
		return "", bad("encode the answer: %v", err)
	}
	ctx, a := watched(ctx)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = c.answer(ctx, p.Handle.Secret, body)
	switch {
	case err == nil:
		return channels.MessageID(answeredPrefix + p.Token), nil
	case errors.Is(err, errSpent) && !p.Private: // surely not sent
		p.Handle = channels.ReplyHandle{}
		return c.Send(ctx, p)
	case errors.Is(err, errSpent):
		return "", &channels.Error{Class: channels.BadMessage, Err: err}
	}
	return "", c.fail("response_url", a, err)
}

var errSpent = errors.New("the command's response_url is used up")

func (c *Channel) answer(ctx context.Context, address string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the response_url is not an address") // the address is a secret
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
		return errSpent
	}
	if err := status(resp); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	var said slackgo.SlackResponse
	if json.Unmarshal(raw, &said) == nil && said.Err() != nil {
		if says(said.Err(), "used_url", "expired_url") {
			return errSpent
		}
		return said.Err()
	}
	return nil
}
