package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// A device that cannot read a message of Parley's asks for it again, by a retry receipt. whatsmeow acknowledges that at once and
// encrypts the message again beside it (handleReceipt of its receipt.go): when the line or the process ends between the two,
// the device waits for ever. So the question is kept until the device confirms the message, and is answered once more after
// the next connection, and whenever the confirmation does not come. A second copy has the same id and is dropped by whoever
// has the first.

const (
	againEvery = 30 * time.Second // from one answer that is not confirmed to the next
	againMost  = 3                // answers after which a device that confirms nothing is left alone
	againKept  = 200              // questions
)

// question is a device that asked for a message again.
type question struct {
	id     string
	device types.JID
	chat   types.JID // as the question named it
	own    types.JID // of the account's own devices: whom the message was for
	at     time.Time
}

// receipt notes who asks again, and who confirms. false leaves the receipt at the server.
func (s *session) receipt(e *events.Receipt) bool {
	ctx, cancel := context.WithTimeout(s.life, 10*time.Second)
	defer cancel()
	var err error
	switch e.Type {
	case types.ReceiptTypeRetry:
		err = s.askedAgain(ctx, e)
	case types.ReceiptTypeDelivered, types.ReceiptTypeSender, types.ReceiptTypeInactive, types.ReceiptTypeRead, types.ReceiptTypePlayed:
		err = s.v.confirmed(ctx, e.MessageIDs, e.Sender)
	default:
	}
	if err != nil {
		s.c.log.Warn("receipt cannot be stored", "err", mask(err.Error()))
	}
	return err == nil
}

func (s *session) askedAgain(ctx context.Context, e *events.Receipt) error {
	for _, id := range e.MessageIDs {
		m, chat, err := s.v.get(ctx, id)
		if err != nil {
			return err
		}
		if m == nil || !s.sameChat(ctx, chat, e.Chat) {
			continue // sentBefore will give nothing either
		}
		if err := s.v.asked(ctx, question{id: id, device: e.Sender, chat: e.Chat, own: e.MessageSender, at: s.c.clock.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// answerAgain answers the questions of before the connection, and those that are not confirmed when they should be. It is run by
// the session's loop and does not block it: what it returns is closed at the end.
func (s *session) answerAgain(connected time.Time) <-chan struct{} {
	if !s.enter() {
		return nil
	}
	done := make(chan struct{})
	go func() { // close waits for it
		defer s.busy.Done()
		defer close(done)
		list, err := s.v.questions(s.life, connected, s.c.clock.Now(), s.c.pace.unread)
		for _, q := range list {
			err = errors.Join(err, s.resend(s.life, q))
		}
		if err != nil && s.life.Err() == nil {
			s.c.log.Warn("retry receipt cannot be answered", "err", mask(err.Error()))
		}
	}()
	return done
}

// resend has whatsmeow answer a question as if it had come now, with a fresh session: the keys that the device gave are gone.
func (s *session) resend(ctx context.Context, q question) error {
	select {
	case s.c.turn <- struct{}{}:
		defer func() { <-s.c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	_, at, err := s.v.sentAt(ctx, q.id)
	if err != nil {
		return err
	}
	e := &events.Receipt{MessageIDs: []string{q.id}, Timestamp: q.at, Type: types.ReceiptTypeRetry, MessageSender: q.own,
		MessageSource: types.MessageSource{Chat: q.chat, Sender: q.device, IsFromMe: s.isMe(q.device), IsGroup: q.chat.Server == types.GroupServer}}
	attrs := waBinary.Attrs{"id": q.id, "type": "retry", "from": q.device}
	if e.IsGroup {
		attrs["from"], attrs["participant"] = q.chat, q.device
	}
	if !q.own.IsEmpty() {
		attrs["recipient"] = q.own
	}
	node := &waBinary.Node{Tag: "receipt", Attrs: attrs, Content: []waBinary.Node{{Tag: "retry", Attrs: waBinary.Attrs{"id": q.id, "t": strconv.FormatInt(at.Unix(), 10), "count": "2", "v": "1"}}}}
	err = errMoved
	for try := 0; errors.Is(err, errMoved) && try < movedMost; try++ {
		//lint:ignore SA1019 nothing else sends a message to one device
		err = s.cli.DangerousInternals().HandleRetryReceipt(ctx, e, node)
	}
	if err != nil {
		err = fmt.Errorf("answer a question for a message: %w", err)
	}
	return errors.Join(err, s.v.answered(ctx, q, s.c.clock.Now()))
}

// asked keeps a question. One that is asked again has all its tries before it.
func (v *deviceStore) asked(ctx context.Context, q question) error {
	if _, err := v.db.ExecContext(ctx, `INSERT INTO parley_again (id, device, chat, own, at, tries) VALUES (?, ?, ?, ?, ?, 0)
		ON CONFLICT (id, device) DO UPDATE SET at = excluded.at, tries = 0`, q.id, q.device.String(), q.chat.String(), q.own.String(), q.at.UnixMilli()); err != nil {
		return fmt.Errorf("keep a question: %w", err)
	}
	v.mu.Lock()
	v.wanted[q.id] = true
	v.mu.Unlock()
	_, err := v.db.ExecContext(ctx, `DELETE FROM parley_again WHERE at < (SELECT at FROM parley_again ORDER BY at DESC LIMIT 1 OFFSET ?)`, againKept)
	return err
}

// confirmed forgets the questions of a device that has the messages now.
func (v *deviceStore) confirmed(ctx context.Context, ids []string, device types.JID) error {
	for _, id := range ids {
		v.mu.Lock()
		wanted := v.wanted[id]
		v.mu.Unlock()
		if !wanted { // nearly always
			continue
		}
		if _, err := v.db.ExecContext(ctx, `DELETE FROM parley_again WHERE id = ? AND device = ?`, id, device.String()); err != nil {
			return fmt.Errorf("forget a question: %w", err)
		}
	}
	return nil
}

// answered notes that a question was answered, or could not be; its device has not confirmed it yet.
func (v *deviceStore) answered(ctx context.Context, q question, now time.Time) error {
	_, err := v.db.ExecContext(ctx, `UPDATE parley_again SET tries = tries + 1, at = ? WHERE id = ? AND device = ?`, now.UnixMilli(), q.id, q.device.String())
	if err == nil {
		_, err = v.db.ExecContext(ctx, `DELETE FROM parley_again WHERE id = ? AND device = ? AND tries >= ?`, q.id, q.device.String(), againMost)
	}
	if err != nil {
		return fmt.Errorf("note an answer: %w", err)
	}
	return nil
}

// questions are those that were asked before the connection, or are not confirmed in time, oldest first.
func (v *deviceStore) questions(ctx context.Context, connected, now time.Time, first time.Duration) ([]question, error) {
	v.mu.Lock()
	none := len(v.wanted) == 0
	v.mu.Unlock()
	if none {
		return nil, nil
	}
	rows, err := v.db.QueryContext(ctx, `SELECT id, device, chat, own, at FROM parley_again WHERE at < ?
		OR at + CASE tries WHEN 0 THEN ? ELSE ? END < ? ORDER BY at`, connected.UnixMilli(), first.Milliseconds(), againEvery.Milliseconds(), now.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("read the questions: %w", err)
	}
	defer rows.Close()
	var list []question
	for rows.Next() {
		var q question
		var at int64
		if err := rows.Scan(&q.id, &q.device, &q.chat, &q.own, &at); err != nil {
			return nil, fmt.Errorf("read the questions: %w", err)
		}
		q.at = time.UnixMilli(at)
		list = append(list, q)
	}
	if err = rows.Err(); err != nil {
		err = fmt.Errorf("read the questions: %w", err)
	}
	return list, err
}
