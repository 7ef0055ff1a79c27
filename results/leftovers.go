package results

// Leftovers is what a run left on the servers.
type Leftovers struct {
	Keys        []string
	Channels    []string // with at least one subscriber
	Connections []string // of each: id, last command and age in CLIENT LIST
}
