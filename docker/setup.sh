#!/bin/sh
# Makes a Redis available to lockbench: an image for Docker, which it pulls or builds from this machine's redis-server,
# or else a redis-server on PATH. "setup.sh stores" installs the other stores from Debian's packages. The script is
# quick if there is nothing to do, can be run again at any time, and starts no servers: lockbench starts them itself, on
# free ports.
set -eu

image=${LOCKBENCH_REDIS_IMAGE:-redis:8}
offline=lockbench-redis:offline # lockbench uses it if redis:8 cannot be pulled

say() { printf 'setup: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# within SECONDS COMMAND... limits the time of a command on systems that have timeout.
within() {
	seconds=$1
	shift
	if have timeout; then timeout "$seconds" "$@"; else "$@"; fi
}

docker_works() { have docker && within 5 docker info >/dev/null 2>&1; }
image_present() { docker image inspect "$image" >/dev/null 2>&1; }

# program NAME prints the path of Redis's server or cli, or of Valkey's.
program() { command -v "redis-$1" || command -v "valkey-$1"; }

# libraries PROGRAM prints the libraries that a program loads, with the loader; nothing for a static program.
libraries() { ldd "$1" 2>/dev/null | sed -n 's/.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p'; }

# build_offline builds the offline image, unless it exists and contains the same files.
build_offline() {
	have ldd && server=$(program server) || return 1
	cli=$(program cli) || cli=
	files="$server $cli $(libraries "$server") ${cli:+$(libraries "$cli")}"
	# shellcheck disable=SC2086 # several words
	parts=$(cat $files | cksum)
	if [ "$(docker image inspect -f '{{.Config.Labels.parts}}' "$offline" 2>/dev/null)" = "$parts" ]; then return 0; fi
	say "building $offline from $server"
	context=$(mktemp -d)
	mkdir -p "$context/root/usr/bin"
	for file in $files; do
		case $file in
		"$server") place=/usr/bin/redis-server ;;
		"$cli") place=/usr/bin/redis-cli ;;
		*) place=$file && mkdir -p "$context/root$(dirname "$file")" ;;
		esac
		cp -L "$file" "$context/root$place" || break
	done
	status=0
	docker build -q -f "$(dirname "$0")/offline.Dockerfile" -t "$offline" --label "parts=$parts" "$context" >&2 &&
		docker run --rm --network none "$offline" redis-server --version >&2 || status=$?
	rm -rf "$context"
	if [ "$status" -ne 0 ]; then docker image rm -f "$offline" >/dev/null 2>&1 || true; fi
	return "$status"
}

# as_root runs a command as root, or fails without asking for a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}
can_be_root() {
	[ "$(id -u)" -eq 0 ] || { have sudo && sudo -n true 2>/dev/null; }
}

# The package would start a Redis on port 6379 and enable it for every boot.
# policy-rc.d is Debian's way to prevent the start. A file that an administrator has put
# there is not changed.
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}

# apt_install PACKAGE... installs packages without starting their services, now or at boot.
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
		for package in "$@"; do # a service has the name of its package, except for etcd-server
			as_root systemctl disable "$package" >/dev/null 2>&1 ||
				as_root systemctl disable "${package%-server}" >/dev/null 2>&1 || true
		done
	fi
	return "$status"
}

# Where Debian's packages put the programs that are not on PATH.
postgres=${POSTGRES_BIN:-/usr/lib/postgresql/*/bin}
zookeeper=${ZOOKEEPER_JAR:-/usr/share/java/zookeeper.jar}
pgbouncer=${PGBOUNCER:-/usr/sbin/pgbouncer} # for the tests of the lock on PostgreSQL

# there reports whether one of these files exists.
there() { for file in "$@"; do [ -e "$file" ] && return 0; done; return 1; }

# stores installs the missing stores.
stores() {
	missing=
	have etcd || missing="$missing etcd-server"
	# shellcheck disable=SC2086 # a pattern
	have postgres || there $postgres/postgres || missing="$missing postgresql"
	{ there "$zookeeper" && have java; } || missing="$missing zookeeper"
	have pgbouncer || there "$pgbouncer" || missing="$missing pgbouncer"
	[ -n "$missing" ] || return 0
	if have apt-get && can_be_root; then
		say "installing$missing"
		# shellcheck disable=SC2086 # several words
		if apt_install $missing; then return 0; fi
	fi
	say "these stores are missing, and this script cannot install them. Run: sudo apt-get install$missing
  or give lockbench the addresses of your servers: -u etcd://HOST:PORT -u postgres://HOST/DATABASE -u zk://HOST:PORT"
	return 1
}

if [ "${1:-}" = engine ]; then # the exit code reports whether containers can be started
	docker_works
	exit
fi

if [ "${1:-}" = stores ]; then
	stores
	exit
fi

if [ "${1:-}" = prometheus ]; then # for the test of --metrics
	have prometheus || { have apt-get && can_be_root && apt_install prometheus; }
	exit
fi

# install_redis makes sure that there is a redis-server.
install_redis() {
	if program server >/dev/null; then return 0; fi
	have apt-get && can_be_root || return 1
	say "installing redis-server"
	apt_install redis-server && have redis-server
}

if ! docker_works; then
	if install_redis; then exit 0; fi
else
	if image_present; then exit 0; fi
	# An offline image means that a pull failed earlier, so lockbench uses it as long as it exists.
	if ! docker image inspect "$offline" >/dev/null 2>&1; then
		say "pulling $image"
		if within 300 docker pull -q "$image" >&2; then exit 0; fi
		say "$image cannot be pulled, so setup.sh tries redis-server"
	fi
	if install_redis; then
		build_offline || say "no image can be built from redis-server, so lockbench starts it as a process"
		exit 0
	fi
fi

say "there is no Redis, and this script cannot install one. Use one of these:
  Debian, Ubuntu:  sudo apt-get install redis-server
  Fedora, RHEL:    sudo dnf install redis
  macOS:           brew install redis
  anywhere:        install and start Docker
  a Redis you have: lockbench --redis redis://HOST:PORT"
exit 1
