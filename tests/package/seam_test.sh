#!/usr/bin/env bash
# Links objects of both compilers into one program with one library, in both orders. The linker
# keeps the first definition of each inline function, so each compiler's code calls the other's.
# Each part of seam/ uses what the other part made: tasks, senders, awaitables, exceptions, stops,
# contracts and sockets. Both compilers must lay out the public types alike.
#
#   seam_test.sh LIBRARY SOURCE
#
# Skips (77) if one of the compilers is not installed.
set -euo pipefail

library=$1 source=$2
seam=$source/tests/package/seam
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "seam: FAILED: $*" >&2
    exit 1
}
for needed in clang++-19 g++-12; do
    command -v "$needed" >/dev/null || {
        echo "seam: skipped: $needed is not installed"
        exit 77
    }
done
# compiled COMPILER OUTPUT FILE FLAG...
compiled() {
    local compiler=$1 output=$2 file=$3
    shift 3
    "$compiler" -std=c++20 -w "-I$source/include" "$@" -c "$seam/$file" -o "$work/$output" ||
        fail "$file cannot be built by $compiler $*"
}

compiled clang++-19 main.o main.cpp -O0
for level in 0 2; do
    compiled clang++-19 "clang$level.o" part.cpp "-O$level" -DSEAM_PART=clang_part
    compiled g++-12 "gcc$level.o" part.cpp "-O$level" -DSEAM_PART=gcc_part
done
passed=0
for clang in clang0 clang2; do
    for gcc in gcc0 gcc2; do
        for order in "$clang $gcc" "$gcc $clang"; do
            read -r first second <<<"$order"
            g++-12 "$work/$first.o" "$work/$second.o" "$work/main.o" "$library" -lz -pthread \
                -o "$work/program" || fail "$order do not link"
            timeout 60 "$work/program" || fail "$order: it ended with $?"
            passed=$((passed + 1))
        done
    done
done
echo "seam: $passed passed"
