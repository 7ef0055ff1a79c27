package runner

import "runtime/debug"

// Version is that of the module as built: a tag, or the commit for a build from
// a work tree.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if commit := buildSetting("vcs.revision"); commit != "" && (version == "" || version == "(devel)") {
		version = "devel-" + commit[:min(len(commit), 12)]
	}
	return version
}

// buildSetting is what the build noted under a key; "" without it.
func buildSetting(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}
