package redisson

// Parked is how many waiters sleep on a channel.
func (s *Subscriber) Parked(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[name]; c != nil {
		return c.parked.Len()
	}
	return 0
}
