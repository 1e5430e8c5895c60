#!/usr/bin/env bash
# Builds a project that has coppice as a subdirectory, as a shared library without http. Installs
# the project, and uses the installed library through CMake and pkg-config.
#
#   subdirectory_test.sh SOURCE COMPILER
set -euo pipefail

source=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
consumer=$source/tests/package/consumer

fail() {
    echo "subdirectory: FAILED: $*" >&2
    exit 1
}
ok() { echo "subdirectory: ok: $*"; }
quietly() {
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        fail "$*"
    }
}
# runs_shared PROGRAM: the program is linked with the shared library and prints the right answer.
runs_shared() {
    [ "$("$1")" = "answer 42" ] || fail "$1 is wrong"
    grep -q 'libcoppice\.so\.[0-9.]* => /' <<<"$(ldd "$1")" || fail "$1 has no libcoppice.so"
}

quietly cmake -S "$source/tests/package/subdirectory" -B "$work/build" -G Ninja \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug -DCOPPICE_UNITY=ON \
    -DCOPPICE_SOURCE="$source"
quietly cmake --build "$work/build" --target help
! grep -E '(coppice-serve|test_[a-z]+|example_[a-z0-9_]+): phony' "$work/log" >&2 ||
    fail "the project has coppice's own programs"
quietly cmake --build "$work/build" --verbose
grep -q -- '-DCOPPICE_WITHOUT_HTTP' <<<"$(grep 'CMakeFiles/subdirectory.dir/' "$work/log")" ||
    fail "the program is not told that there is no http"
runs_shared "$work/build/subdirectory"
ok "a shared library below a project that hides and joins"

"$compiler" -std=c++20 -DCOPPICE_WITHOUT_HTTP "-I$source/include" -M "$consumer/main.cpp" \
    >"$work/files"
! grep 'coppice/http/' "$work/files" >&2 || fail "<coppice/coppice.hpp> includes http nevertheless"
ok "<coppice/coppice.hpp> has no http"

prefix="$work/a prefix"
quietly cmake --install "$work/build" --prefix "$prefix"
library=$(find "$prefix" -name 'libcoppice.so')
[ -n "$library" ] || fail "libcoppice.so is not installed"
[ -z "$(find "$prefix" -path '*http*')" ] || fail "headers of http are installed"
quietly cmake -S "$consumer" -B "$work/cmake" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$work/cmake"
runs_shared "$work/cmake/consumer"
ok "installed, find_package(coppice) finds the shared library"

libdir=$(dirname "$library")
export PKG_CONFIG_PATH="$libdir/pkgconfig"
eval "quietly '$compiler' -std=c++20 '$consumer/main.cpp' '-Wl,-rpath,$libdir' \
    $(pkg-config --cflags --libs coppice) -o '$work/by_pkg_config'"
runs_shared "$work/by_pkg_config"
ok "installed, pkg-config finds the shared library"
