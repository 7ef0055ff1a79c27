package results

// Leftovers are what is on the servers of a run.
type Leftovers struct {
	Keys        []string
	Channels    []string // with at least one subscriber
	Connections []string // their CLIENT LIST entries' id, last command and age
}
