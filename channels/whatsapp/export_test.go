package whatsapp

import "time"

// Hurry makes the pauses between connections, and after one, as short as a test can bear.
func (c *Channel) Hurry() {
	c.pace.first, c.pace.longest, c.pace.again, c.pace.unread = 5*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
}

// ExpectNoAnswer shortens the wait for an acknowledgement, which will not come, until the function that it gives is called.
func (c *Channel) ExpectNoAnswer() (over func()) {
	c.answer.Store(int64(100 * time.Millisecond))
	return func() { c.answer.Store(int64(answerFor)) }
}

// AnswerWithin sets the bound of all waits for WhatsApp.
func (c *Channel) AnswerWithin(d time.Duration) { c.answer.Store(int64(d)) }

// ExpectNoReason shortens the wait for why a line has ended, of which nothing will be said.
func (c *Channel) ExpectNoReason() { c.pace.reason = time.Millisecond }
