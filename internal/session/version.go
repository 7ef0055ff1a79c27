package session

import (
	"runtime/debug"
	"slices"
)

// Version returns the version of the module: a tag, or the commit for a build from a
// work tree.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if commit := commit(); commit != "" && (version == "" || version == "(devel)") {
		version = "devel-" + commit[:min(len(commit), 12)]
	}
	return version
}

// commit returns the commit of a build from a work tree; "" if it is unknown.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	at := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
	if at < 0 {
		return ""
	}
	return info.Settings[at].Value
}
