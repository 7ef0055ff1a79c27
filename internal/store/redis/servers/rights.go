package servers

// MeasuringRights are the rights that lockbench itself needs to show all figures, as rules of ACL
// SETUSER: for counters, limits, connections, subscriptions, leftovers and baselines. Without one
// of them a figure is unknown.
func MeasuringRights() []string {
	return []string{
		"+info", "+config|get", "+client|list", "+scan", "+unlink",
		"+pubsub|channels", "+pubsub|shardchannels", "+script|load", "+evalsha", "+get",
	}
}

// ClusterRights are further rights that it needs in a cluster.
func ClusterRights() []string { return []string{"+cluster|info", "+cluster|myid", "+exists"} }
