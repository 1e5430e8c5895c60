#!/usr/bin/env bash
# Prints the path of an nginx for the tests that put one before the server; status 1 if there is
# none. One that is installed comes first, then the one in build/nginx.
#
#   scripts/nginx.sh [--fetch]     --fetch: downloads Debian's package and unpacks it there, without
#                                  installing it: an installed nginx would be started
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"
folder=$root/build/nginx

# The libraries that it needs may be missing: it must run, not only exist.
find_nginx() {
    local program
    for program in "$(command -v nginx || true)" /usr/sbin/nginx "$folder/usr/sbin/nginx"; do
        [ -n "$program" ] && "$program" -v >/dev/null 2>&1 || continue
        echo "$program"
        return 0
    done
    return 1
}

fetch() {
    local packages
    packages=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$packages'" EXIT
    (cd -- "$packages" && apt-get -q download nginx) >/dev/null 2>&1 || return 1
    mkdir -p "$folder"
    dpkg-deb -x "$packages"/nginx_*.deb "$folder"
}

case ${1:-} in
    --fetch) find_nginx || { fetch && find_nginx; } ;;
    '') find_nginx ;;
    *)
        say "usage: scripts/nginx.sh [--fetch]"
        exit 2
        ;;
esac
