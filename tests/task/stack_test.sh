#!/usr/bin/env bash
# Tasks use constant stack, however the compiler treats symmetric transfer: stack_program.cpp, built
# without and with optimisation and with sanitizers, runs on half a megabyte.
set -euo pipefail
compiler=$1 include=$2
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() {
    "$compiler" -std=c++20 "$@" -I"$include" "$here/stack_program.cpp" \
        "$include"/../src/{base,task,exec,stop}/*.cpp -pthread -o "$work/program" 2>"$work/log" || {
        cat "$work/log"
        exit 1
    }
    if ! (ulimit -s 512 && "$work/program"); then
        printf 'stack_program fails with %s %s\n' "$compiler" "$*"
        exit 1
    fi
}

run -O0
run -O1
run -O2
run -O0 -fsanitize=address,undefined
run -O0 -fsanitize=thread
