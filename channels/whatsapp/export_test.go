package whatsapp

import "time"

// Hurry shortens how long the server's acknowledgement of a message is waited for.
func (c *Channel) Hurry(wait time.Duration) { c.answerWait = wait }
