package runner

import "runtime/debug"

// Version is the version of the module in the build: a tag, or the commit if it was built from a
// work tree.
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

// buildSetting returns the build's setting of this name; "" if there is none.
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
