#!/usr/bin/env bash
# With the package's script, gdb shows four tasks below a pipeline, built without optimization: the
# program's own frames in order, and which task waits for which. Skips (77) if gdb cannot run a
# program.
#
#   gdb_test.sh LIBRARY SOURCE COMPILER
set -euo pipefail

library=$1 source=$2 compiler=$3
frames_max=12 columns_max=200
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "gdb: FAILED: $*" >&2
    cat "$work/said" >&2
    exit 1
}
command -v gdb >/dev/null || {
    echo "gdb: skipped: gdb is not installed"
    exit 77
}
gdb -nx -batch -ex run -ex 'python print("ran")' /bin/true >"$work/said" 2>&1 || true
if ! grep -q '^ran' "$work/said" || ! grep -q 'exited normally' "$work/said"; then
    echo "gdb: skipped: it has no Python, or may not run a program here"
    exit 77
fi

"$compiler" -std=c++20 -O0 -g "-I$source/include" "$source/tests/package/gdb/tasks.cpp" "$library" \
    -lz -pthread -o "$work/tasks"
timeout 60 gdb -nx -batch -ex 'set width 0' -ex "source $source/packaging/gdb/coppice-gdb.py" \
    -ex 'break stop_here' -ex run -ex 'echo == frames\n' -ex bt -ex 'echo == tasks\n' \
    -ex 'coppice tasks' -ex 'echo == resumed\n' -ex continue -ex bt -ex 'echo == tasks again\n' \
    -ex 'coppice tasks' -ex 'echo == end\n' "$work/tasks" >"$work/said" 2>&1 || fail "gdb"
# $1: the file to write; $2, $3: the headings in gdb's output between which its lines stand
part() {
    sed -n "/^== $2\$/,/^== $3\$/p" "$work/said" | grep '^#' >"$work/$1" || fail "no $1"
}
part frames frames tasks
part tasks.said tasks resumed
part frames.resumed resumed 'tasks again'
part tasks.resumed 'tasks again' end

[ "$(wc -l <"$work/frames")" -le $frames_max ] || fail "more than $frames_max frames"
[ -z "$(awk -v most=$columns_max 'length($0) > most' "$work/frames" "$work/tasks.said")" ] ||
    fail "a line of more than $columns_max columns"
# $1: a file; the rest: functions that it must name in this order
in_order() {
    local file=$1 line=0 found
    shift
    for name in "$@"; do
        found=$(awk -v from=$line -v name="$name" \
            'NR > from && $0 ~ "(^|[^a-z_])" name " ?(\\(|at )" { print NR; exit }' "$file")
        [ -n "$found" ] || fail "$name is not where it should be in $(basename "$file")"
        line=$found
    done
}
in_order "$work/frames" stop_here fourth third second first main
in_order "$work/tasks.said" fourth third second first
in_order "$work/frames.resumed" stop_here fourth main
grep -q third "$work/frames.resumed" && fail "a task that waits is still on the stack"
in_order "$work/tasks.resumed" fourth third second first
grep -q 'coppice::' "$work/frames" && fail "a frame of the library is shown"
echo "gdb: ok: $(wc -l <"$work/frames") frames, four tasks in order"
