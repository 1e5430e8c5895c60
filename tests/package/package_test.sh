#!/usr/bin/env bash
# Installs the built tree into a fresh prefix and uses it from outside, through CMake and
# pkg-config, in place and after the prefix has moved.
#
#   package_test.sh BUILD SOURCE COMPILER APPS(1|0) VERSION
set -euo pipefail

build=$1 source=$2 compiler=$3 apps=$4 version=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0

fail() {
    echo "package: FAILED: $*" >&2
    exit 1
}
ok() {
    passed=$((passed + 1))
    echo "package: ok: $*"
}
quietly() {
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        fail "$*"
    }
}

# The path has a space: users choose their prefix.
prefix="$work/first place"
quietly cmake --install "$build" --prefix "$prefix"
libdir=$(dirname "$(cd "$prefix" && find . -name libcoppice.a)")
libdir=${libdir#./}

for file in "$libdir/libcoppice.a" "$libdir/cmake/coppice/coppiceConfig.cmake" \
    "$libdir/cmake/coppice/coppiceConfigVersion.cmake" \
    "$libdir/cmake/coppice/coppiceTargets.cmake" "$libdir/pkgconfig/coppice.pc"; do
    [ -s "$prefix/$file" ] || fail "$file is not installed"
done
ok "library and package files are installed"

# All headers are installed, except the model checker's half of the seam and those of a component
# that was not built, and no other file.
left_out='/coppice/(none'
for component in tls mpi http2; do
    [ -e "$prefix/$libdir/libcoppice_$component.a" ] || left_out+="|$component(/|\\.hpp)"
done
left_out+=')'
(cd "$source/include" && find . -name '*.hpp' ! -name '*_model.hpp' |
    { grep -vE "$left_out" || true; } | sort) >"$work/expected"
(cd "$prefix/include" && find . -type f | sort) >"$work/installed"
diff "$work/expected" "$work/installed" >&2 || fail "the installed headers differ from the tree's"
ok "headers are installed"

grep -rlF -e "$source" -e "$build" "$prefix" >&2 && fail "these files name the tree or the prefix"
ok "nothing installed names the tree it came from"

# $1: prefix
by_cmake() {
    rm -rf "$work/cmake"
    quietly cmake -S "$source/tests/package/consumer" -B "$work/cmake" -G Ninja \
        -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$1"
    grep -qF "coppice_DIR:PATH=$1/" "$work/cmake/CMakeCache.txt" || fail "another coppice was found"
    quietly cmake --build "$work/cmake"
    [ "$("$work/cmake/consumer")" = "answer 42" ] || fail "the consumer built by CMake is wrong"
}
# $1: prefix; the rest: the program's own flags. Its warnings are on for coppice's headers too.
by_pkg_config() {
    local flags="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror ${*:2}"
    export PKG_CONFIG_PATH="$1/$libdir/pkgconfig"
    [ "$(pkg-config --modversion coppice)" = "$version" ] || fail "coppice.pc is not of $version"
    # pkg-config escapes spaces as a shell would: its output is shell text, so a shell reads it.
    eval "quietly '$compiler' -std=c++20 $flags '$source/tests/package/consumer/main.cpp' \
        $(pkg-config --cflags --libs coppice) -o '$work/by_pkg_config'"
    [ "$("$work/by_pkg_config")" = "answer 42" ] || fail "the consumer built by pkg-config is wrong"
}
by_cmake "$prefix"
ok "find_package(coppice) builds and runs a program"
by_pkg_config "$prefix"
ok "pkg-config builds and runs a program"

if [ -e "$prefix/$libdir/libcoppice_tls.a" ]; then
    quietly cmake -S "$source/tests/package/consumer_tls" -B "$work/tls" -G Ninja \
        -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix"
    quietly cmake --build "$work/tls"
    [ "$("$work/tls/consumer")" = "refused" ] || fail "the consumer of the component tls is wrong"
    eval "quietly '$compiler' -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
        -Wno-sign-conversion -Werror '$source/tests/package/consumer_tls/main.cpp' \
        $(pkg-config --cflags --libs coppice_tls) -o '$work/tls/by_pkg_config'"
    [ "$("$work/tls/by_pkg_config")" = "refused" ] || fail "coppice_tls.pc builds a wrong program"
    ok "find_package(coppice COMPONENTS tls) and pkg-config coppice_tls build and run a program"
fi

if [ -e "$prefix/$libdir/libcoppice_mpi.a" ]; then
    quietly cmake -S "$source/tests/package/consumer_mpi" -B "$work/mpi" -G Ninja \
        -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix"
    quietly cmake --build "$work/mpi"
    ok "find_package(coppice COMPONENTS mpi) builds a program"
    if command -v mpicxx.openmpi >/dev/null && command -v mpicxx.mpich >/dev/null; then
        refused=0
        for other in mpicxx.openmpi mpicxx.mpich; do
            cmake -S "$source/tests/package/consumer_mpi" -B "$work/$other" -G Ninja \
                -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" \
                -DMPI_CXX_COMPILER="$other" >"$work/log" 2>&1 && continue
            grep -q 'the component mpi was built with' "$work/log" || fail "$(cat "$work/log")"
            refused=$((refused + 1))
        done
        [ "$refused" = 1 ] || fail "find_package refused $refused of two implementations of MPI"
        ok "find_package refuses an implementation of MPI that the library was not built with"
    fi
fi

if [ -e "$prefix/$libdir/libcoppice_http2.a" ]; then
    quietly cmake -S "$source/tests/package/consumer_http2" -B "$work/http2" -G Ninja \
        -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix"
    quietly cmake --build "$work/http2"
    [ "$("$work/http2/consumer")" = "h2" ] || fail "the consumer of the component http2 is wrong"
    eval "quietly '$compiler' -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
        -Wno-sign-conversion -Werror '$source/tests/package/consumer_http2/main.cpp' \
        $(pkg-config --cflags --libs coppice_http2) -o '$work/http2/by_pkg_config'"
    [ "$("$work/http2/by_pkg_config")" = "h2" ] || fail "coppice_http2.pc builds a wrong program"
    ok "find_package(coppice COMPONENTS http2) and pkg-config coppice_http2 build a program"
fi

# clang 19 warns of its own choice of features for some processors.
native="-march=native -Wno-invalid-feature-combination"
for flags in "-fno-rtti -DNDEBUG" "-std=c++23 -O2 -flto $native"; do
    # shellcheck disable=SC2086  # several flags
    by_pkg_config "$prefix" $flags
    ok "a program compiled with $flags is built and runs"
done

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(newer LANGUAGES CXX)
find_package(coppice 99 REQUIRED)
END
if cmake -S "$work" -B "$work/newer" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1; then
    fail "a version that does not exist was found"
fi
grep -q 'coppiceConfig.cmake, version:' "$work/log" || fail "refused, but not for its version"
ok "a version that is not there is refused"

if [ "$apps" = 1 ]; then
    [ "$("$prefix/bin/coppice-serve" --version)" = "coppice-serve $version" ] ||
        fail "coppice-serve --version does not say $version"
    ok "coppice-serve is installed and runs"
fi

# The library links with programs of the other compiler. compilers_test.sh tests every room so.
others=(clang++-19 clang++)
if grep -q clang <<<"$("$compiler" --version)"; then others=(g++-12 g++); fi
other=$(command -v "${others[@]}" | head -n 1) || true
if [ -n "$other" ]; then
    own=$compiler compiler=$other
    by_pkg_config "$prefix"
    compiler=$own
    ok "a program of the other compiler is built and runs"
else
    echo "package: not tried: a program of another compiler; there is none"
fi

mv "$prefix" "$work/second place"
prefix="$work/second place"
by_cmake "$prefix"
by_pkg_config "$prefix"
[ "$apps" = 0 ] || "$prefix/bin/coppice-serve" --version >"$work/log"
ok "a moved prefix works as before"

echo "package: $passed passed"
