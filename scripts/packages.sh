#!/usr/bin/env bash
# Installs the missing Debian packages of the named sets, as root or through sudo. Does nothing if
# all are installed.
#
#   scripts/packages.sh SET...     build: what ./run needs; test: what ./test adds; bench: rivals;
#                                  docs: what scripts/docs.sh needs; postgresql: coppice-notes over
#                                  PostgreSQL; browser: what tests pages
set -euo pipefail

lock_wait_seconds=300

# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

packages_of() {
    case $1 in
        build) echo clang-19 cmake ninja-build libcli11-dev zlib1g-dev libssl-dev \
            libnghttp2-dev ;;
        # llvm-19 has the symbolizer, which puts function names into the sanitizers' reports.
        test) echo g++-12 libclang-rt-19-dev llvm-19 lld-19 libgtest-dev relacy-dev ccache \
            pkg-config libhttp-parser-dev libsqlite3-dev nlohmann-json3-dev curl python3 \
            python3-pip gdb g++-12-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user googletest \
            clang-16 libc++-19-dev libopenmpi-dev openmpi-bin libmpich-dev mpich ;;
        # For COPPICE_POSTGRESQL. Installing postgresql-15 creates a cluster and starts its server.
        # The tests do not use that cluster: they start their own.
        postgresql) echo libpq-dev postgresql-15 ;;
        # nginx is left out: installing it starts a web server. The tests and ./bench use
        # scripts/nginx.sh.
        bench) echo libtbb-dev libomp-19-dev libboost1.81-dev libboost-fiber1.81-dev \
            libconcurrentqueue-dev libasio-dev \
            wrk nghttp2-client python3 python3-pygal ;;
        docs) echo doxygen mkdocs ;;
        # Not in the set test, because it takes half a gigabyte. Without it the tests of pages are
        # skipped.
        browser) echo chromium openssl ;;
        *)
            say "unknown package set '$1': build, test, bench, docs, postgresql or browser"
            exit 2
            ;;
    esac
}

wanted=()
for set in "$@"; do
    packages=$(packages_of "$set") || exit $?
    read -ra more <<<"${packages}"
    wanted+=("${more[@]}")
done
[ ${#wanted[@]} -gt 0 ] || {
    say "usage: scripts/packages.sh build|test|bench|docs|postgresql|browser..."
    exit 2
}

if ! command -v dpkg-query >/dev/null; then
    say "this is not a Debian system: install the equivalents of these packages: ${wanted[*]}"
    exit 0
fi
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for package in "${wanted[@]}"; do
    grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

say "installing packages: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        say "that needs root, and sudo is not installed. As root: apt-get install ${missing[*]}"
        exit 1
    fi
    if [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
        say "that needs sudo, which asks for a password, and there is no terminal to ask on."
        say "Run first: sudo apt-get install ${missing[*]}"
        exit 1
    fi
    as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

locked='Could not get lock\|Unable to acquire\|Unable to lock'
# apt ARGUMENTS: apt-get without questions; waits while another program holds the package system.
apt() {
    local deadline=$((SECONDS + lock_wait_seconds)) said=no
    while true; do
        if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q \
            "$@" </dev/null 2>&1 | tee "$log" | sed -u "/$locked/d" >&2; then
            return 0
        fi
        grep -q "$locked" "$log" || return 1
        if [ $SECONDS -ge $deadline ]; then
            say "another program still holds the package system after $lock_wait_seconds seconds:"
            grep "$locked" "$log" >&2
            exit 1
        fi
        [ $said = yes ] || say "another program holds the package system; waiting for it"
        said=yes
        sleep 3
    done
}

# A failed update is not an error yet: the lists on disk may be recent enough.
refreshed=yes
apt -o APT::Update::Error-Mode=any update || {
    refreshed=no
    say "the package lists could not be refreshed"
}
if ! apt install -y --no-install-recommends "${missing[@]}"; then
    unknown=$(grep -oE 'Unable to locate package \S+|Package \S+ has no installation candidate' \
        "$log") || true
    if [ -n "$unknown" ] && [ $refreshed = yes ]; then
        # shellcheck source=/dev/null
        system=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-}") || true
        say "${unknown//$'\n'/; }."
        say "All are in Debian 12 (main); this is ${system:-unknown}. Check its package sources."
    elif grep -qE 'enough free space|No space left' "$log"; then
        say "the disk is full."
    elif [ $refreshed = no ] ||
        grep -qE 'Could not (resolve|connect)|Temporary failure|Failed to fetch' "$log"; then
        say "the packages could not be downloaded: no network, or no access to the package sources."
    else
        say "apt-get install failed, see above."
    fi
    exit 1
fi
say "packages are installed"
