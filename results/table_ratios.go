package results

// ratioColumns compare each strategy with the first at the same point, round by
// round; nil where there is nothing to compare.
func ratioColumns(r *Report, all []summary) []column {
	if r.Rounds < 2 {
		return nil
	}
	bases := map[string]summary{} // by point
	for _, s := range all {
		if _, known := bases[s.point]; !known {
			bases[s.point] = s
		}
	}
	if len(bases) == len(all) {
		return nil
	}
	beside := func(metric string) func(summary) string {
		m, _ := FindMetric(metric)
		return func(s summary) string {
			base := bases[s.point]
			if base.Name == s.Name {
				return "1"
			}
			r := ratio(s.used, base.used, exactlyKnown(m))
			if r == nil {
				return unknown
			}
			if digits := fewest(digits(m, s), digits(m, base)); digits > 0 {
				return r.roughly(digits)
			}
			return r.String()
		}
	}
	return []column{
		{"acq/s", false, beside("acq_per_s")},
		{"wait p99\nper client", false, beside("wait_per_client_p99")},
		{"commands\nper acq", false, beside("commands_per_acq")},
		{"Redis CPU\nper acq", false, beside("redis_cpu_per_acq")},
	}
}
