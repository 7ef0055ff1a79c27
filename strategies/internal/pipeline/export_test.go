package pipeline

// Queued returns how many calls are waiting for the next exchange.
func Queued(c *Conn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}
