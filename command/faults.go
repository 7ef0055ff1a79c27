package command

// problems joins the errors of a command's flags with others. Each error names where its
// value came from.
func (a *app) problems(given source, others ...error) error {
	problems := append(unknownFlags(given.set, a.args), given.problems()...)
	for _, other := range others {
		problems = append(problems, flatten(other)...)
	}
	return given.named(problems)
}
