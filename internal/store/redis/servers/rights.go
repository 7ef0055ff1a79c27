package servers

// MeasuringRights are what lockbench itself needs of a server to know all it can show,
// as rules of ACL SETUSER: the counters, the limits, who is connected and subscribed,
// leftovers, and the baselines. Without one of them a figure is a dash.
func MeasuringRights() []string {
	return []string{
		"+info", "+config|get", "+client|list", "+scan", "+unlink",
		"+pubsub|channels", "+pubsub|shardchannels", "+script|load", "+evalsha", "+get",
	}
}

// ClusterRights are those it needs of a cluster besides.
func ClusterRights() []string { return []string{"+cluster|info", "+cluster|myid", "+exists"} }
