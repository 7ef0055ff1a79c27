package measure

// recent is what a shard saw since it was last asked. Its shard's mu guards it.
type recent struct {
	waits   sketch
	longest int64
}

func (r *recent) record(ns int64) {
	r.waits.record(ns)
	r.longest = max(r.longest, ns)
}

// Recent is a summary of the waits that ended since it was last asked for.
type Recent struct {
	Count         int64
	P50, P99, Max int64 // ns; percentiles within 7 %
}

// Recent summarises the waits in the window that ended since the last call.
func (r *Recorder) Recent() Recent {
	var counts sketch
	var sum Recent
	for _, s := range r.shards {
		s.mu.Lock()
		for bucket, n := range s.recent.waits.counts {
			counts.counts[bucket] += n
			counts.total += uint64(n)
		}
		sum.Max = max(sum.Max, s.recent.longest)
		s.recent = recent{}
		s.mu.Unlock()
	}
	sum.Count = int64(counts.total)
	sum.P50, sum.P99 = min(counts.quantile(0.5), sum.Max), min(counts.quantile(0.99), sum.Max)
	return sum
}

// Waiting is the number of clients that wait for the key now.
func (k *Key) Waiting() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.arrivals.waiting
}
