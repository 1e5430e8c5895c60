#!/usr/bin/env bash
# Prints the path of an nginx, for the tests that put one before the server. Prefers an installed
# nginx to the one in build/nginx. The status is 1 if there is neither.
#
#   scripts/nginx.sh [--fetch]     --fetch: if there is none, downloads Debian's package and unpacks
#                                  it into build/nginx; installing it would start a web server
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"
folder=$root/build/nginx

# A candidate must run, not only exist: the libraries that it needs may be missing.
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
