# Shared by the scripts: the project's folder, and installing packages. Sourced, not run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

# need PACKAGE...: installs missing packages with apt (root or sudo). Where it may not, prints the
# exact command and exits 1.
need() {
	missing=
	for package in "$@"; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
			missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" = 0 ]; then
		as_root=
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		as_root=sudo
	else
		command="sudo apt-get install -y --no-install-recommends$missing"
		echo "missing:$missing. Run: $command" >&2
		exit 1
	fi
	echo "installing:$missing" >&2
	{ $as_root apt-get update -q &&
		DEBIAN_FRONTEND=noninteractive $as_root apt-get install -q -y \
			--no-install-recommends $missing; } >build-setup.log 2>&1 || {
		tail -20 build-setup.log >&2
		echo "could not install:$missing" >&2
		exit 1
	}
	rm -f build-setup.log
}

build_packages="gcc libc6-dev meson ninja-build pkg-config python3 libzstd-dev liblz4-dev"
build_packages="$build_packages zlib1g-dev libncurses-dev libmicrohttpd-dev"
test_packages="$build_packages clang libclang-rt-14-dev binutils musl-tools mandoc libblas-dev"
test_packages="$test_packages libsqlite3-dev libsvm-dev tmux python3-prometheus-client"
test_packages="$test_packages libcurl4-openssl-dev libjansson-dev"
test_packages="$test_packages libgnutls28-dev openssl python3-yaml"
test_packages="$test_packages protobuf-c-compiler libprotobuf-c-dev libnghttp2-dev python3-grpcio"

# unpack COMMAND PACKAGE...: takes the programs of Debian packages that would start a server, into
# build-COMMAND, where COMMAND is not there yet.
unpack() {
	command=$1
	shift
	! command -v "$command" >/dev/null && [ ! -x "build-$command/usr/bin/$command" ] || return 0
	mkdir -p "build-$command"
	(
		cd "build-$command"
		apt-get download -q "$@" || {
			apt-get update -q && apt-get download -q "$@"
		}
		for package in *.deb; do
			dpkg-deb -x "$package" . && rm "$package"
		done
	) >/dev/null 2>&1
}
