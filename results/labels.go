package results

// OutlivedLease begins the label of a run in which a lock was held for longer than its
// TTL, and nobody renews it.
const OutlivedLease = "held for longer than the lease"
