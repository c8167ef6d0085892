package whatsapp

import "time"

// Hurry shortens how long the server's acknowledgement of a message is waited for.
func (c *Channel) Hurry(wait time.Duration) { c.answerWait = wait }

// Settle shortens how long a connection waits before it sends what devices asked for before it.
func (c *Channel) Settle(wait time.Duration) { c.againAfter = wait }
