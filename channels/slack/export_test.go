package slack

import "time"

// Hurry makes the pauses after failures as short as a test can bear.
func (c *Channel) Hurry() {
	c.pace.first, c.pace.longest, c.pace.disabled, c.pace.crowded = 4*time.Millisecond, 50*time.Millisecond, time.Millisecond, time.Millisecond
	c.pace.settled = 0
}
