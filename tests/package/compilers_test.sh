#!/usr/bin/env bash
# Builds programs with every installed compiler, links them with one library, and runs them. The
# programs are examples that together use every room. They are built without optimization: they then
# define each inline function, and the linker makes the library use their definitions.
#
#   compilers_test.sh LIBRARY SOURCE COMPILER
#
# Skips (77) if no other compiler is installed.
set -euo pipefail

library=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
every_room=(06_udp_contracts 14_scope 21_fork_join 22_wait_for_tasks 23_trace 30_deadlines 33_files
    36_run_server 40_tokens 50_client)
passed=0

fail() {
    echo "compilers: FAILED: $*" >&2
    exit 1
}

# clang passes a task of a number in a register and g++ in memory: task/internal/task_in_memory.hpp.
numbers='(unsigned )?(char|short|int|long|long long|float|double)|signed char'
nm -C "$library" >"$work/symbols"
if grep -Em 1 "task_promise<($numbers)," "$work/symbols" >&2; then
    fail "the library has a task of a number: return a struct"
fi

# linked COMPILER EXAMPLE
linked() {
    local program=$work/program
    "$1" -std=c++20 -O0 -w -I "$source/include" "$source/examples/$2.cpp" "$library" -lz -pthread \
        -o "$program" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        fail "$2 cannot be built by $1"
    }
    timeout 60 "$program" >"$work/said" || fail "$2, built by $1, ended with $?"
    diff "$source/examples/$2.expected" "$work/said" >&2 || fail "$2, built by $1, says otherwise"
    passed=$((passed + 1))
    echo "compilers: ok: $2 by $1"
}
# Succeeds if a compiler is installed and is not the library's own.
is_another() {
    command -v "$1" >/dev/null && [ "$(readlink -f "$(command -v "$1")")" != \
        "$(readlink -f "$(command -v "$compiler")")" ]
}

for other in g++-12 clang++-19; do
    if is_another "$other"; then
        for example in "${every_room[@]}"; do
            linked "$other" "$example"
        done
    fi
done
if is_another clang++-16; then
    linked clang++-16 22_wait_for_tasks
    linked clang++-16 50_client
else
    echo "compilers: not tried: clang++-16, which is not installed"
fi
[ $passed -gt 0 ] || exit 77
echo "compilers: $passed passed"
