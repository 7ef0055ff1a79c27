#!/bin/sh
# Makes a Redis available to lockbench: an image for Docker, else a redis-server
# on PATH; "setup.sh stores" the other stores, out of Debian's packages. It is quick when
# there is nothing to do, may be run again at any time, and starts nothing: lockbench
# starts servers itself, on free ports.
set -eu

image=${LOCKBENCH_REDIS_IMAGE:-redis:8}

say() { printf 'setup: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# within SECONDS COMMAND...: not every system can bound a command's time.
within() {
	seconds=$1
	shift
	if have timeout; then timeout "$seconds" "$@"; else "$@"; fi
}

docker_works() { have docker && within 5 docker info >/dev/null 2>&1; }
image_present() { docker image inspect "$image" >/dev/null 2>&1; }

# as_root runs a command as root, or fails without asking for a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}
can_be_root() {
	[ "$(id -u)" -eq 0 ] || { have sudo && sudo -n true 2>/dev/null; }
}

# The package would start a Redis on port 6379 and enable it for every boot.
# policy-rc.d is Debian's way to forbid the first; what an administrator has put
# there is left alone.
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}

# apt_install PACKAGE...
apt_install() {
	placed=no
	if [ ! -e "$policy" ]; then
		placed=yes
		trap 'as_root rm -f "$policy"' EXIT
		trap 'exit 130' INT TERM
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod 755 "$policy"
	fi
	install() {
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >&2
	}
	status=0
	install "$@" || { as_root apt-get update -q >&2 && install "$@"; } || status=$?
	if [ "$placed" = yes ]; then
		as_root rm -f "$policy"
		trap - EXIT INT TERM
	fi
	if [ "$status" -eq 0 ] && have systemctl; then
		for package in "$@"; do # a service is called as its package, but for etcd-server
			as_root systemctl disable "$package" >/dev/null 2>&1 ||
				as_root systemctl disable "${package%-server}" >/dev/null 2>&1 || true
		done
	fi
	return "$status"
}

# Where Debian's packages put the programs that are not on PATH.
postgres=${POSTGRES_BIN:-/usr/lib/postgresql/*/bin}
zookeeper=${ZOOKEEPER_JAR:-/usr/share/java/zookeeper.jar}

# there says whether one of these files is.
there() { for file in "$@"; do [ -e "$file" ] && return 0; done; return 1; }

# stores installs what is missing of them.
stores() {
	missing=
	have etcd || missing="$missing etcd-server"
	# shellcheck disable=SC2086 # it is a pattern
	have postgres || there $postgres/postgres || missing="$missing postgresql"
	{ there "$zookeeper" && have java; } || missing="$missing zookeeper"
	[ -n "$missing" ] || return 0
	if have apt-get && can_be_root; then
		say "installing$missing"
		# shellcheck disable=SC2086 # they are several
		if apt_install $missing; then return 0; fi
	fi
	say "these stores are missing and cannot be installed without you: sudo apt-get install$missing
  or give lockbench the servers that you have: -u etcd://HOST:PORT -u postgres://HOST/DATABASE -u zk://HOST:PORT"
	return 1
}

if [ "${1:-}" = stores ]; then
	stores
	exit
fi

docker=no
if docker_works; then
	docker=yes
	if image_present; then exit 0; fi
fi

# lockbench makes an image of it where Docker works and redis:8 cannot be had.
if have redis-server; then exit 0; fi

if [ "$docker" = yes ]; then
	say "pulling $image"
	if within 300 docker pull -q "$image" >&2; then exit 0; fi
	say "it cannot be pulled; falling back to redis-server"
fi

if have apt-get && can_be_root; then
	say "installing redis-server"
	if apt_install redis-server && have redis-server; then exit 0; fi
fi

say "there is no Redis and it cannot be installed without you. One of these will do:
  Debian, Ubuntu:  sudo apt-get install redis-server
  Fedora, RHEL:    sudo dnf install redis
  macOS:           brew install redis
  anywhere:        install and start Docker
  a Redis you have: lockbench --redis redis://HOST:PORT"
exit 1
