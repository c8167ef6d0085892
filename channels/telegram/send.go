package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/channels"
)

// noPreview keeps Telegram from fetching links that a model wrote: a preview is a way to leak data.
const noPreview = `{"is_disabled":true}`

// sent is the part of a sent message that is read.
type sent struct {
	ID int64 `json:"message_id"`
}

// Send sends one message: a text, or one file with the text as its caption. A text whose markup Telegram
// refuses goes once more as plain text. Private has no counterpart here and is ignored.
func (c *Channel) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	base, err := destination(p)
	if err != nil {
		return "", err
	}
	var land func(int64)
	if p.To.Kind == channels.Room {
		chat, _ := strconv.ParseInt(string(p.To.Peer), 10, 64) // destination has checked it
		land = c.own.begin(chat)
	}
	m, err := c.sendTo(ctx, base, p)
	if p.ReplyTo != "" && says(err, "replied not found", "reply message not found", "replied message not found") {
		p.ReplyTo = "" // some servers do not know allow_sending_without_reply
		if base, err = destination(p); err == nil {
			m, err = c.sendTo(ctx, base, p)
		}
	}
	if land != nil {
		land(m.ID)
	}
	if err != nil {
		return "", err
	}
	if m.ID == 0 {
		return "", &channels.Error{Class: channels.Unknown, Err: errors.New("telegram answered without a message id")}
	}
	return id(m.ID), nil
}

func (c *Channel) sendTo(ctx context.Context, base params, p channels.Post) (sent, error) {
	if len(p.Files) > 0 {
		return c.sendFile(ctx, base, p)
	}
	return c.sendText(ctx, base, p)
}

func (c *Channel) sendText(ctx context.Context, base params, p channels.Post) (sent, error) {
	return c.asMarkup(p, func(text string, markup bool) (sent, error) {
		return call[sent](ctx, c.api, "sendMessage", base.text("text", text, markup).add("link_preview_options", noPreview))
	})
}

// asMarkup tries HTML, and plain text if Telegram cannot parse that. The refused try was surely not sent.
func (c *Channel) asMarkup(p channels.Post, try func(text string, markup bool) (sent, error)) (sent, error) {
	m, err := try(p.Text, true)
	if err == nil || p.Plain == "" || !says(err, "can't parse entities") {
		return m, err
	}
	c.log.Warn("telegram refused the markup, sending plain text", "err", err)
	return try(p.Plain, false)
}

// call is post with the time limit of a call that waits for nothing.
func call[T any](ctx context.Context, a *api, method string, p params) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return post[T](ctx, a, method, p.form())
}

// params are a method's parameters, in order.
type params [][2]string

func (p params) add(key, value string) params {
	return append(p[:len(p):len(p)], [2]string{key, value})
}

func (p params) text(key, text string, markup bool) params {
	p = p.add(key, text)
	if markup {
		p = p.add("parse_mode", tgbotapi.ModeHTML)
	}
	return p
}

func (p params) form() form {
	size := 0
	for _, kv := range p {
		size += len(kv[0]) + len(kv[1]) + len(kv[1])/2 + 2
	}
	f := make(form, 0, size)
	for _, kv := range p {
		f = f.add(kv[0], kv[1])
	}
	return f
}

func (p params) sdk() tgbotapi.Params {
	out := make(tgbotapi.Params, len(p))
	for _, kv := range p {
		out[kv[0]] = kv[1]
	}
	return out
}

// destination is where and how a post goes: all but its content.
func destination(p channels.Post) (params, error) {
	base, err := place(p.To)
	if err != nil {
		return nil, err
	}
	if p.ReplyTo != "" {
		n, err := number("message id", string(p.ReplyTo))
		if err != nil {
			return nil, err
		}
		// A deleted question must not cost the answer.
		base = base.add("reply_parameters", fmt.Sprintf(`{"message_id":%d,"allow_sending_without_reply":true}`, n))
	}
	if p.Silent {
		base = base.add("disable_notification", "true")
	}
	return withButtons(base, p.Actions)
}

// place is the chat and the topic. The General topic, 1, has no id when sending.
func place(a channels.Address) (params, error) {
	if _, err := number("chat id", string(a.Peer)); err != nil {
		return nil, err
	}
	base := params{{"chat_id", string(a.Peer)}}
	if a.Thread == "" || a.Thread == "1" {
		return base, nil
	}
	if _, err := number("topic id", string(a.Thread)); err != nil {
		return nil, err
	}
	return base.add("message_thread_id", string(a.Thread)), nil
}

func withButtons(base params, actions [][]channels.Action) (params, error) {
	if len(actions) == 0 {
		return base, nil
	}
	rows := make([][]tgbotapi.InlineKeyboardButton, 0, len(actions))
	for _, row := range actions {
		var buttons []tgbotapi.InlineKeyboardButton
		for _, a := range row {
			if a.Value == "" || len(a.Value) > maxCallback {
				return nil, bad("the value of button %q has %d bytes, Telegram takes 1 to %d", a.Label, len(a.Value), maxCallback)
			}
			buttons = append(buttons, tgbotapi.NewInlineKeyboardButtonData(a.Label, a.Value))
		}
		rows = append(rows, buttons)
	}
	markup, err := json.Marshal(tgbotapi.NewInlineKeyboardMarkup(rows...))
	if err != nil {
		return nil, bad("encode the buttons: %v", err)
	}
	return base.add("reply_markup", string(markup)), nil
}

// number checks an id that the network gave us: all of Telegram's are integers.
func number(what, s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, bad("%s %q is not a number", what, s)
	}
	return n, nil
}

func bad(format string, args ...any) error {
	return &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf(format, args...)}
}
