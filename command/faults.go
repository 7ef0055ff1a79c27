package command

// faults joins those of a command's flags with others that were found, each with where
// its value came from.
func (a *app) faults(given source, others ...error) error {
	faults := append(unknownFlags(given.set, a.args), given.faults()...)
	for _, other := range others {
		faults = append(faults, each(other)...)
	}
	return given.named(faults)
}
