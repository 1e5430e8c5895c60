#!/usr/bin/env bash
# Links the objects of the static library as a shared one, as the build does with BUILD_SHARED_LIBS.
# Compares its symbols with packaging/symbols.txt, and runs programs with it.
#
#   shared_test.sh LIBRARY SOURCE COMPILER [--renew]
#
# --renew writes packaging/symbols.txt. The file lists only what the library alone defines. Programs
# define inline functions too, and which ones depends on the compiler.
set -euo pipefail

library=$1 source=$2 compiler=$3 renew=${4:-}
listed=$source/packaging/symbols.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "shared: FAILED: $*" >&2
    exit 1
}

# The C locale keeps the output of `ld` and `nm` in the form that is matched below.
export LC_ALL=C
"$compiler" -shared -o "$work/libcoppice.so" -Wl,-soname,libcoppice.so -Wl,-z,defs \
    "-Wl,--version-script=$source/cmake/coppice.map" -Wl,--whole-archive "$library" \
    -Wl,--no-whole-archive -lz -pthread || fail "the objects do not link as a shared library"
nm -D --defined-only "$work/libcoppice.so" | awk '$2 ~ /^[TDBR]$/ { print $3 }' |
    c++filt | grep -v '^\(typeinfo\|vtable\)' | sort -u >"$work/defined"
# c++filt leaves a name with a requires-clause as it is mangled.
nm -D --defined-only "$work/libcoppice.so" | awk '{ print $3 }' | c++filt |
    grep -vE '^(((typeinfo|typeinfo name|vtable) for|guard variable for|TLS .* for) )?coppice::' |
    grep -v '^_ZZ*NK\{0,1\}7coppice' >"$work/foreign" || true
[ ! -s "$work/foreign" ] || {
    head "$work/foreign" >&2
    fail "names outside of namespace coppice are visible"
}
# A cold call preserves registers that the dynamic linker clobbers: base/internal/cold_call.hpp.
readelf -rW "$work/libcoppice.so" | c++filt >"$work/relocations"
! grep -F '[abi:cold]' "$work/relocations" >&2 || fail "a cold call goes through the dynamic linker"
if [ "$renew" = --renew ]; then
    cp "$work/defined" "$listed"
    exit
fi
diff -u "$listed" "$work/defined" >&2 ||
    fail "the symbols have changed; if that is intended: $0 $library $source $compiler --renew"
echo "shared: ok: $(wc -l <"$listed") symbols are as listed"

# built EXAMPLE FLAG...: builds and runs an example with the shared library. Exceptions, virtual
# functions and thread-local variables must work across the border.
built() {
    local example=$1
    shift
    "$compiler" -std=c++20 -w "$@" -I "$source/include" -c "$source/examples/$example.cpp" \
        -o "$work/program.o"
    "$compiler" "$work/program.o" -pthread -L "$work" -lcoppice "-Wl,-rpath,$work" \
        -o "$work/program"
    timeout 60 "$work/program" >"$work/said" || fail "$example $* ended with $?"
    diff "$source/examples/$example.expected" "$work/said" >&2 || fail "$example says otherwise"
    echo "shared: ok: $example $*"
}
built 22_wait_for_tasks
# Under -fvisibility-inlines-hidden, g++ hides the variables of inline functions even if they are
# marked visible.
hiding=(-fvisibility=hidden)
if grep -q clang <<<"$("$compiler" --version)"; then hiding+=(-fvisibility-inlines-hidden); fi
for example in 40_tokens 50_client; do
    built "$example" -O0 "${hiding[@]}"
    # Variables that are written at run time, such as thread slots and locks, are shared whatever a
    # program hides. A constant, or the text of a message about to be printed, may exist twice.
    objdump -tC "$work/program.o" | grep -F '.hidden coppice::' | grep -E ' \.t?(bss|data)\b' |
        grep -vE ' \.data\.rel\.ro|coppice::no_error|join_message\(.*::text$' \
            >"$work/hidden" || true
    [ ! -s "$work/hidden" ] || {
        cat "$work/hidden" >&2
        fail "a program that hides its symbols has these a second time: make them visible"
    }
done
echo "shared: ok: a program that hides its symbols duplicates no variable of the library"
