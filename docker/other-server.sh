#!/usr/bin/env bash
# Downloads a server with the Redis protocol that this Debian release does not have, such as Valkey, from the packages
# of a newer release. It extracts the packages into a folder and does not install them. The server runs with the loader
# and the libraries of those packages.
#
#     docker/other-server.sh valkey-server trixie DIR    # prints the program to start
#
# Needs apt-get, the keys of Debian's archive, and a download of 13 MB. With LOCKBENCH_REDIS_SERVER=PROGRAM, lockbench
# and its tests start the program.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: $0 valkey-server|redis-server|redict SUITE DIR" >&2; exit 2; }
package=$1 suite=$2
umask 022
(umask 077 && mkdir -p "$3") && dir=$(cd "$3" && pwd -P)
# Programs in the folder are started, so no other user may own or change a file there. The exception is the folder of
# apt, in which a failure leaves files, because nothing in it is started.
strange=$(find "$dir" -path "$dir/apt" -prune -o \( ! -uid "$(id -u)" -o ! -type l -perm /022 \) -print | head -n 1)
[ -z "$strange" ] || { echo "$0: $strange must belong to you, and only you may write to it" >&2; exit 1; }
program=$dir/bin/$package
if [ -x "$program" ] && "$program" --version >/dev/null 2>&1; then
	echo "$program"
	exit
fi
keys=/usr/share/keyrings/debian-archive-keyring.gpg
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && [ -r "$keys" ] ||
	{ echo "$0: needs apt-get, dpkg-deb and $keys" >&2; exit 1; }
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' | grep -o 'https\?://[^ ]*/debian/\?\( \|$\)' | tr -d ' ' | head -n 1 || true)
[ -n "$mirror" ] || { echo "$0: the sources of apt have no mirror of Debian" >&2; exit 1; }

# Give apt a separate state, so that nothing outside the folder changes.
apt=$dir/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: >"$apt/status"
echo "deb [signed-by=$keys] $mirror $suite main" >"$apt/sources.list"
# The suite experimental has only packages that differ from those of sid, so add sid for their dependencies.
[ "$suite" != experimental ] || echo "deb [signed-by=$keys] $mirror sid main" >>"$apt/sources.list"
cat >"$apt/apt.conf" <<CONF
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "5";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
CONF
export APT_CONFIG=$apt/apt.conf
{ apt-get update -q && apt-get install -y -q --no-install-recommends --download-only -t "$suite" "$package"; } >"$apt/log" 2>&1 ||
	{ tail -n 3 "$apt/log" >&2; exit 1; }
for archive in "$apt"/archives/*.deb; do dpkg-deb -x "$archive" "$dir/root"; done

loader=$(find "$dir/root" -name 'ld-linux*.so.*' | head -n 1)
libraries=$(find "$dir/root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd :)
binary=$(find "$dir/root" -path "*/bin/$package" -o -path "*/bin/$package-server" | sort -r | head -n 1 || true)
[ -n "$loader" ] && [ -n "$binary" ] || { echo "$0: the packages do not contain $package" >&2; exit 1; }
mkdir -p "$dir/bin"
link=$dir/root/$package # a server derives its role from its name
ln -sf "$(readlink -f "$binary")" "$link"
printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$libraries" "$link" >"$program"
chmod +x "$program"
"$program" --version >&2
rm -rf "$apt"
echo "$program"
