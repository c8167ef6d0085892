package telegramtest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/channels/channeltest/stage"
)

// maxPoll is the longest that getUpdates waits.
const maxPoll = 50 * time.Second

// update waits until an offset above its id confirms it.
type update struct {
	id      int64
	body    []byte // the whole Update object
	offered int
	again   bool // it was confirmed and is given out once more nevertheless
}

// Redelivery makes the queue worse than Telegram's documents promise, as crashes and moves of its servers do.
type Redelivery struct {
	Again   float64 // chance that a confirmed update comes once more, its offset ignored
	Twice   float64 // chance that an update is twice in one answer
	Reorder bool    // answers are shuffled
}

// queue holds the updates of the bot.
type queue struct {
	watch *stage.Watch
	mu    sync.Mutex
	pend  []*update
	next  int64
	// allowed is the list of the last call that gave one; nil: Telegram's default.
	allowed   map[string]bool
	poll      *poller
	webhook   string
	confirmed int64
	worse     Redelivery
	rng       *rand.Rand
}

// poller is a call that waits.
type poller struct {
	wake chan struct{}
	// ended is closed when something else ended the poll; why is set before.
	ended chan struct{}
	why   *apiError
}

func newQueue(first int64, seed uint64, w *stage.Watch) *queue {
	return &queue{watch: w, next: first, rng: stage.Rand(seed)}
}

// Redeliver sets how bad delivery is from now on.
func (s *Server) Redeliver(r Redelivery) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.worse = r
}

// Raw queues an update of the given kind with the given JSON object and returns its id; 0: the bot does not want the
// kind (allowed_updates), so Telegram drops it.
func (s *Server) Raw(kind, object string) int64 { return s.queue.put(kind, []byte(object)) }

func (q *queue) put(kind string, object []byte) int64 {
	id := q.add(kind, object)
	q.watch.Changed()
	return id
}

func (q *queue) add(kind string, object []byte) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.wants(kind) {
		return 0
	}
	id := q.next
	q.next++
	b := make([]byte, 0, len(object)+len(kind)+48)
	b = strconv.AppendInt(append(b, `{"update_id":`...), id, 10)
	b = append(append(append(b, `,"`...), kind...), `":`...)
	b = append(append(b, object...), '}')
	q.pend = append(q.pend, &update{id: id, body: b})
	if q.poll != nil {
		select {
		case q.poll.wake <- struct{}{}:
		default: // woken already
		}
	}
	return id
}

func (q *queue) wants(kind string) bool {
	if q.allowed == nil {
		return kind != "message_reaction" && kind != "message_reaction_count" && kind != "chat_member"
	}
	return q.allowed[kind]
}

func getUpdates(c *call) *apiError {
	q := c.s.queue
	offset, limit := c.int("offset"), int(c.int("limit"))
	if limit <= 0 || limit > 100 {
		limit = 100
	}
	wait := min(time.Duration(c.int("timeout"))*time.Second, maxPoll)
	if fail := q.begin(offset, c.get("allowed_updates")); fail != nil {
		return fail
	}
	p := &poller{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		if q.batch(c, limit, p, wait > 0) {
			return nil
		}
		c.s.watch.Changed() // Polling
		select {
		case <-p.wake:
		case <-deadline.C:
			q.drop(p)
			c.out = append(c.out, "[]"...)
			return nil
		case <-p.ended:
			return p.why
		case <-c.ctx.Done():
			q.drop(p)
			return errGone
		case <-c.s.Done():
			q.drop(p)
			return errGone
		}
	}
}

// begin ends the poll that waits, if any, confirms what is below offset and remembers the kinds.
func (q *queue) begin(offset int64, allowed string) *apiError {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.webhook != "" {
		return errWebhookSet
	}
	q.end(errOtherPoller) // as on the public server, the newer call wins
	if allowed != "" {
		var kinds []string
		if err := json.Unmarshal([]byte(allowed), &kinds); err != nil {
			return badRequest("can't parse allowed updates JSON object")
		}
		q.allowed = nil
		if len(kinds) > 0 {
			q.allowed = map[string]bool{}
			for _, k := range kinds {
				q.allowed[k] = true
			}
		}
	}
	q.confirm(offset)
	return nil
}

func (q *queue) confirm(offset int64) {
	if offset < 0 { // keep the last -offset updates, forget the rest
		if n := len(q.pend) + int(max(offset, -1<<30)); n > 0 {
			q.pend = slices.Clone(q.pend[n:])
		}
		return
	}
	if offset == 0 {
		return
	}
	var again []*update
	n := 0
	for n < len(q.pend) && (q.pend[n].id < offset || q.pend[n].again) {
		u := q.pend[n]
		q.pend[n] = nil
		n++
		if u.again && u.offered == 0 {
			again = append(again, u)
			continue
		}
		q.confirmed = max(q.confirmed, u.id)
		if !u.again && q.worse.Again > 0 && q.rng.Float64() < q.worse.Again {
			u.again, u.offered = true, 0
			again = append(again, u)
		}
	}
	q.pend = q.pend[n:]
	if len(again) > 0 {
		q.pend = append(again, q.pend...)
	}
}

// batch writes what waits. When there is nothing and the caller may wait, p becomes the poll that waits.
func (q *queue) batch(c *call, limit int, p *poller, mayWait bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-p.ended: // a newer poll took over between two looks
		return false
	default:
	}
	if len(q.pend) == 0 && mayWait {
		q.poll = p
		if c.s.revoked.Load() { // since the call was let in
			q.end(errUnauthorized)
		}
		return false
	}
	if q.poll == p {
		q.poll = nil
	}
	give := q.pend[:min(limit, len(q.pend))]
	if q.worse.Reorder || q.worse.Twice > 0 {
		give = q.spoil(give)
	}
	c.out = append(c.out, '[')
	for i, u := range give {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, u.body...)
		u.offered++
	}
	c.out = append(c.out, ']')
	return true
}

func (q *queue) spoil(give []*update) []*update {
	var out []*update
	for _, u := range give {
		out = append(out, u)
		if q.rng.Float64() < q.worse.Twice {
			out = append(out, u)
		}
	}
	if q.worse.Reorder {
		q.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}

// end ends the poll that waits, if any. The caller holds q.mu.
func (q *queue) end(why *apiError) {
	if q.poll != nil {
		q.poll.why = why
		close(q.poll.ended)
		q.poll = nil
	}
}

func (q *queue) drop(p *poller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.poll == p {
		q.poll = nil
	}
}

func setWebhook(c *call) *apiError {
	c.s.queue.mu.Lock()
	defer c.s.queue.mu.Unlock()
	c.s.queue.webhook = c.get("url")
	return c.yes()
}

// SetWebhook sets a webhook, as another program with the same token might: getUpdates then answers 409.
func (s *Server) SetWebhook(url string) {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.queue.webhook = url
	if url != "" {
		s.queue.end(errSetWebhook)
	}
}

func deleteWebhook(c *call) *apiError {
	c.s.queue.mu.Lock()
	defer c.s.queue.mu.Unlock()
	c.s.queue.webhook = ""
	if c.bool("drop_pending_updates") {
		c.s.queue.pend = nil
	}
	return c.yes()
}

func getWebhookInfo(c *call) *apiError {
	c.s.queue.mu.Lock()
	defer c.s.queue.mu.Unlock()
	c.out = appendString(append(c.out, `{"url":`...), c.s.queue.webhook)
	c.out = append(c.out, `,"has_custom_certificate":false,"pending_update_count":`...)
	c.out = strconv.AppendInt(c.out, int64(len(c.s.queue.pend)), 10)
	c.out = append(c.out, '}')
	return nil
}
