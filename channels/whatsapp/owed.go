package whatsapp

import (
	"context"
	"strings"
	"sync"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley/channels"
)

// WhatsApp answers each message with an acknowledgement and each query with its result. whatsmeow waits for them under its
// lock for all sends, and in the handler of what arrives: 75 s for most, and without an end for what it sends again after a
// cut (retryFrame of its request.go). One lost answer would stop the whole account for as long.
//
// So every question is kept here until it is answered, wherever in whatsmeow it was asked: it tells each stanza that it sends
// and gets to a log. Who has waited for longer than the bound is given a refusal in the server's place.

const (
	// codeUnanswered is the refusal that stands for an answer that did not come; WhatsApp has none of this number.
	codeUnanswered = "598"
	// lateFor is what a question has at least on a new connection, on which it is asked again.
	lateFor = time.Second
)

// owing is a stanza that WhatsApp owes an answer.
type owing struct {
	message bool // else a query
	at      time.Time
	late    *time.Timer
}

// owed are the questions that are open, over any number of connections.
type owed struct {
	wait func() time.Duration      // the bound
	over func(id string, o *owing) // a question's time is over
	good func()                    // a message was acknowledged after some were not

	mu      sync.Mutex
	open    map[string]*owing
	up      bool
	closed  bool
	acked   time.Time // the last acknowledgement of a message
	heard   time.Time // the last answer of any kind
	missing int       // messages in a row that were not acknowledged, with nothing acknowledged between
	mute    int       // queries in a row, in the same way
}

func newOwed(wait func() time.Duration) *owed { return &owed{wait: wait, open: map[string]*owing{}} }

// asked notes what goes out.
func (w *owed) asked(stanza string) {
	tag, attr := opening(stanza)
	o := &owing{message: tag == "message", at: time.Now()}
	switch {
	case o.message:
	case tag == "iq" && (attr("type") == "get" || attr("type") == "set") && attr("xmlns") != "w:p": // of a ping whatsmeow tells itself
	default:
		return
	}
	id := attr("id")
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == "" || w.closed {
		return
	}
	if was := w.open[id]; was != nil {
		was.late.Stop()
	}
	o.late = time.AfterFunc(w.wait(), func() { w.expire(id, o) })
	w.open[id] = o
}

// got notes what comes in.
func (w *owed) got(stanza string) {
	tag, attr := opening(stanza)
	if tag != "ack" && tag != "iq" {
		return
	}
	w.mu.Lock()
	o := w.open[attr("id")]
	recovered := false
	if o != nil {
		o.late.Stop()
		delete(w.open, attr("id"))
		w.heard, w.mute = time.Now(), 0
		if o.message {
			recovered = w.missing > 0
			w.acked, w.missing = w.heard, 0
		}
	}
	w.mu.Unlock()
	if recovered {
		w.good()
	}
}

// expire is the end of a question's time. Without a connection nothing can be told: it goes on with the next.
func (w *owed) expire(id string, o *owing) {
	w.mu.Lock()
	mine := w.open[id] == o && w.up && !w.closed
	if mine {
		delete(w.open, id)
	}
	w.mu.Unlock()
	if mine {
		w.over(id, o)
	}
}

// connected gives the open questions, which are asked again on a new connection, what is left of their time.
func (w *owed) connected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = true
	for _, o := range w.open {
		o.late.Reset(max(time.Until(o.at.Add(w.wait())), lateFor))
	}
}

func (w *owed) disconnected() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up = false
}

// miss notes that a question which somebody waited for was not answered. useless says that the line seems to be: no other
// message was acknowledged since this one was sent, or the second query in a row got nothing (the server may not know one kind).
func (w *owed) miss(o *owing) (useless bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !o.message {
		if w.heard.Before(o.at) {
			w.mute++
		}
		return w.mute > 1
	}
	if useless = w.acked.Before(o.at); useless {
		w.missing++
	}
	return useless
}

// doubted counts the messages that were not acknowledged, with nothing acknowledged since.
func (w *owed) doubted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missing
}

// settle ends the doubt where nothing is asked that could show anything; false: something is.
func (w *owed) settle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.open {
		if o.message {
			return false
		}
	}
	w.missing = 0
	return true
}

// close forgets everything.
func (w *owed) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, o := range w.open {
		o.late.Stop()
	}
	clear(w.open)
}

// opening is the tag of a stanza as whatsmeow writes it for its log, and its attributes.
func opening(stanza string) (tag string, attr func(name string) string) {
	head, _, _ := strings.Cut(stanza, ">")
	tag, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(head, "/"), "<"), " ")
	return tag, func(name string) string {
		_, value, _ := strings.Cut(" "+rest, " "+name+`="`)
		value, _, _ = strings.Cut(value, `"`)
		return value
	}
}

// traffic gives whatsmeow's log of stanzas to those who keep account of them.
type traffic struct {
	logger
	note func(stanza string)
}

func (t traffic) Debugf(_ string, args ...any) {
	if len(args) != 1 {
		return
	}
	if stanza, ok := args[0].(string); ok {
		t.note(stanza)
	}
}

// unanswered frees who waits for an answer that did not come. Where nothing is acknowledged at all, the line is given up.
func (s *session) unanswered(id string, o *owing) {
	if !s.enter() {
		return
	}
	defer s.busy.Done()
	if !s.refuseFor(id, o) || !s.owed.miss(o) {
		return
	}
	s.c.log.Warn("whatsapp acknowledges nothing", "after", s.c.answerWait().String())
	s.signal(error(errUnanswered))
}

// refuseFor answers a question in the server's place; false: nobody waits for it any more.
func (s *session) refuseFor(id string, o *owing) (freed bool) {
	defer func() {
		if recover() != nil { // whoever waited gave up in this moment
			freed = false
		}
	}()
	node := &waBinary.Node{Tag: "ack", Attrs: waBinary.Attrs{"class": "message", "id": id, "error": codeUnanswered}}
	if !o.message {
		node = &waBinary.Node{Tag: "iq", Attrs: waBinary.Attrs{"id": id, "type": "error", "from": types.ServerJID}, Content: []waBinary.Node{
			{Tag: "error", Attrs: waBinary.Attrs{"code": codeUnanswered, "text": errUnanswered.Error()}}}}
	}
	ctx, cancel := context.WithTimeout(s.life, time.Second)
	defer cancel()
	//lint:ignore SA1019 it is dangerous to answer twice; the question is not open any more
	return s.cli.DangerousInternals().ReceiveResponse(ctx, node)
}

// doubt tells that the line stands and nothing shows yet that it is of use.
func (s *session) doubt() {
	s.report(channels.Status{State: channels.Deaf, Cause: errUnanswered.Error(), Err: errUnanswered, Hint: hintUnanswered})
}

const hintUnanswered = "Parley connects again, and what was not acknowledged is sent again under the same id. If it stays so, look at WhatsApp on the phone."
