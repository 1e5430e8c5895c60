#!/usr/bin/env bash
# Limits what room exec costs to compile beyond the standard headers that it includes.
#
#   compile_time_test.sh COMPILER INCLUDE
#
# The budget is 1 s and 200 MB for a pipeline, 1.5 s for the umbrella header. Times differ between
# machines and with their load, so the test checks only stable figures: the lines that the room
# adds, the compiler's memory, and with clang the number of types, declarations and expressions. It
# prints the processor time, the best of several runs, but does not check it: even its ratio to the
# time of the same standard headers varies by a tenth. The ceiling of the lines leaves 2 percent,
# because the two compilers break the same lines differently. Lower the ceilings when the figures
# fall.
set -euo pipefail

compiler=$1 include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c++20 -I "$include")

cat >"$work/pipeline.cpp" <<'CODE'
#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>

namespace ex = coppice::execution;
int main() {
    auto [i] = *coppice::this_thread::sync_wait(ex::just(1) | ex::then([](int j) { return j; }));
    return i;
}
CODE
echo '#include <coppice/execution.hpp>' >"$work/umbrella.cpp"

# Prints the system headers that a file includes, each once.
std_of() {
    "$compiler" "${flags[@]}" -M "$1" | tr '[:blank:]' '\n' |
        sed -n 's|.*/include/c++/[0-9]*/\([a-z_]*\)$|#include <\1>|p' | sort -u
}
# Counts the lines that our own headers contribute to a file, without blanks and comments.
own_lines() {
    "$compiler" "${flags[@]}" -E "$1" |
        awk '/^# [0-9]+ "/ { own = $3 ~ /\/coppice\// } own && NF && !/^#/ { ++n } END { print n }'
}
# Prints the number of types, declarations and expressions of a file together, or 0 if the compiler
# does not count them.
entities() {
    { "$compiler" "${flags[@]}" -fsyntax-only -Xclang -print-stats "$1" 2>&1 || true; } |
        awk '/ (types|decls|stmts\/exprs) total/ { n += $1 } END { print n + 0 }'
}
# Prints the peak memory of compiling a file, in MB; 0 if it cannot be measured.
megabytes() {
    [ -x /usr/bin/time ] || { echo 0 && return; }
    /usr/bin/time -f %M -o "$work/memory" "$compiler" "${flags[@]}" -O2 -c "$1" -o /dev/null
    echo $(($(tail -n 1 "$work/memory") / 1024))
}
# Prints the processor time of compiling a file, in ms: a busy machine changes it little.
milliseconds() { # FILE FLAG...
    local file=$1 TIMEFORMAT='%U %S' spent
    shift
    spent=$({ time "$compiler" "${flags[@]}" "$@" "$file" >&2; } 2>&1)
    awk '{ printf "%d", 1000 * ($1 + $2) }' <<<"$spent"
}
best_milliseconds() {
    local best=1000000 t
    for _ in 1 2 3; do
        t=$(milliseconds "$@")
        if ((t < best)); then best=$t; fi
    done
    echo "$best"
}

status=0
# at_most WHAT FIGURE CEILING
at_most() {
    printf '  %-46s %7d (at most %d)\n' "$1" "$2" "$3"
    if (($2 > $3)); then status=1; fi
}
check() { # NAME LINES_MAX ENTITIES_MAX MEGABYTES_MAX
    local file="$work/$1.cpp" std="$work/$1_std.cpp" syntax whole
    std_of "$file" >"$std"
    syntax=$(best_milliseconds "$file" -fsyntax-only)
    whole=$(best_milliseconds "$file" -O2 -c -o /dev/null)
    local syntax_std=0 whole_std=0
    syntax_std=$(best_milliseconds "$std" -fsyntax-only)
    whole_std=$(best_milliseconds "$std" -O2 -c -o /dev/null)
    echo "$1: $((whole - whole_std)) ms beyond the standard headers' $whole_std ms at -O2," \
        "$((syntax - syntax_std)) ms beyond $syntax_std ms with -fsyntax-only"
    at_most "own lines" "$(own_lines "$file")" "$2"
    at_most "types, declarations, expressions beyond std" \
        "$(($(entities "$file") - $(entities "$std")))" "$3"
    at_most "MB beyond std" "$(($(megabytes "$file") - $(megabytes "$std")))" "$4"
}
check pipeline 3540 68000 30
check umbrella 11600 95500 30
exit $status
