#!/usr/bin/env bash
# A plain `cmake -S . -B build` configures with whatever is installed. A part whose package is
# missing is left out with one message. If the part was asked for by name, it is an error; one error
# names all missing packages.
#
#   plain_test.sh CMAKE SOURCE COMPILER
set -euo pipefail

cmake=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "plain: FAILED: $*"
    cat "$work/said"
    exit 1
}
# configure FLAG...: runs CMake and keeps its output; returns CMake's status.
configure() {
    rm -rf "$work/build"
    env -u CMAKE_GENERATOR "$cmake" -S "$source" -B "$work/build" "-DCMAKE_CXX_COMPILER=$compiler" \
        "$@" >"$work/said" 2>&1
}
without() { printf -- '-DCMAKE_DISABLE_FIND_PACKAGE_%s=ON\n' "$@"; }
says() { grep -qF -- "$1" <<<"$(tr -s ' \n' ' ' <"$work/said")" || fail "it does not say '$1'"; }

mapfile -t none < <(without ZLIB OpenSSL CLI11 GTest SQLite3 PostgreSQL MPI)
none+=(-DCOPPICE_NGHTTP2_LIBRARY=)
configure "${none[@]}" || fail "without any package it ends with $?"
says 'they need zlib (zlib1g-dev)'
says 'tls is left out: it needs OpenSSL 3 (libssl-dev)'
says 'messages between processes are left out: MPI (libopenmpi-dev or libmpich-dev)'
says 'http2 is left out: it needs http and nghttp2 (libnghttp2-dev)'
says 'the tests are left out: GTest (libgtest-dev) is not installed'

mapfile -t some < <(without CLI11 SQLite3)
configure "${some[@]}" || fail "without CLI11 it ends with $?"
says 'the programs in apps are left out: CLI11 (libcli11-dev) is not installed'

mapfile -t two < <(without CLI11 GTest)
! configure "${two[@]}" -DCOPPICE_APPS=ON -DCOPPICE_TESTS=ON || fail "it ignores missing packages"
says 'libcli11-dev (CLI11) for the programs in apps'
says 'libgtest-dev (GTest) for the tests'
echo "plain: as expected"
