package redisson

// Parked returns how many waiters of the Subscriber are parked on a channel.
func (s *Subscriber) Parked(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[name]; c != nil {
		return c.parked.Len()
	}
	return 0
}
