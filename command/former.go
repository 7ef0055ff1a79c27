package command

import (
	"cmp"
	"os"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/workloads"
)

// former are flags by the names that they once had: scripts still use them.
func former() map[string]string {
	names := workloads.Renamed()
	names["no-floors"] = "no-baselines"
	return names
}

// acceptFormer has a set of flags take former names for the present ones.
func acceptFormer(set *pflag.FlagSet) {
	names := former()
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(names[name], name))
	})
}

// setVariable is the variable that stands in for a flag: of its former name where only that
// one is set.
func setVariable(flag string) string {
	present := variableOf(flag)
	if os.Getenv(present) != "" {
		return present
	}
	for old, name := range former() {
		if name == flag && os.Getenv(variableOf(old)) != "" {
			return variableOf(old)
		}
	}
	return present
}
