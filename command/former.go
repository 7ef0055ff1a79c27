package command

import (
	"cmp"
	"os"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/workloads"
)

// former returns the former names of flags, with the present ones: scripts still use them.
func former() map[string]string {
	names := workloads.Renamed()
	names["no-floors"] = "no-baselines"
	return names
}

// acceptFormer lets a set of flags accept former names.
func acceptFormer(set *pflag.FlagSet) {
	names := former()
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(names[name], name))
	})
}

// setVariable returns the variable that stands in for a flag: that of its former name if
// only this one is set.
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
