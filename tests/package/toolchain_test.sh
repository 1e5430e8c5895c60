#!/usr/bin/env bash
# Builds the library, and programs that together use every room, with a compiler or a standard
# library that no stage uses. All warnings are errors. Then runs the programs. To save time, the
# common headers are precompiled, and ten sources of the library are compiled as one.
#
#   toolchain_test.sh SOURCE CLANG [FLAG...]
#
# Skips (77) if CLANG is not installed, or finds no standard library with these flags.
set -euo pipefail

source=$1 compiler=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
examples=(06_udp_contracts 14_scope 21_fork_join 22_wait_for_tasks 23_trace 30_deadlines 33_files
    36_run_server 40_tokens 50_client)
flags=(-std=c++20 -O0 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror
    "-I$source/include" "$@")
name="$compiler${*:+ $*}"

fail() {
    echo "toolchain: FAILED: $*" >&2
    exit 1
}
command -v "$compiler" >/dev/null || {
    echo "toolchain: skipped: $compiler is not installed"
    exit 77
}
"$compiler" "${flags[@]}" -x c++ -fsyntax-only - <<<'#include <version>' >"$work/log" 2>&1 || {
    echo "toolchain: skipped: $name finds no standard library"
    exit 77
}

echo '#include <coppice/coppice.hpp>' >"$work/all.hpp"
"$compiler" "${flags[@]}" -x c++-header "$work/all.hpp" -o "$work/all.pch" ||
    fail "<coppice/coppice.hpp> cannot be compiled by $name"
export compiler work
# compiled FILE FLAG...: compiles FILE into an object named after its folder and itself.
compiled() {
    local file=$1
    shift
    "$compiler" "$@" -include-pch "$work/all.pch" -c "$file" \
        -o "$work/$(basename "$(dirname "$file")")_$(basename "$file" .cpp).o"
}
export -f compiled
mkdir "$work/library"
# The rooms tls, http2, and mpi need OpenSSL, nghttp2, and MPI, and are libraries of their own.
find "$source/src" -name '*.cpp' ! -path '*/tls/*' ! -path '*/http2/*' ! -path '*/mpi/*' | sort |
    sed 's/.*/#include "&"/' |
    split -l 10 --additional-suffix=.cpp - "$work/library/"
# shellcheck disable=SC2016  # the shell that xargs starts expands these
{
    printf '%s\0' "$work"/library/*.cpp
    printf "$source/examples/%s.cpp\0" "${examples[@]}"
} | xargs -0 -n 1 -P "$(nproc)" bash -c 'compiled "${@: -1}" "${@:1:$#-1}"' _ "${flags[@]}" ||
    fail "the library or an example cannot be built by $name"

objects=("$work"/library_*.o)
for example in "${examples[@]}"; do
    "$compiler" "$@" "$work/examples_$example.o" "${objects[@]}" -lz -pthread \
        -o "$work/program" || fail "$example cannot be linked by $name"
    (cd "$work" && timeout 60 ./program) >"$work/said" || fail "$example by $name ended with $?"
    diff "$source/examples/$example.expected" "$work/said" >&2 || fail "$example says otherwise"
    echo "toolchain: ok: $example by $name"
done
