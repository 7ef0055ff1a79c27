package pipeline

// Queued is how many calls wait for an exchange.
func Queued(c *Conn) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}
