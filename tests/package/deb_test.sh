#!/usr/bin/env bash
# Makes the Debian packages, checks their contents, and uses them unpacked, without installing them.
#
#   deb_test.sh BUILD SOURCE COMPILER APPS(1|0) VERSION
set -euo pipefail

build=$1 source=$2 compiler=$3 apps=$4 version=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "deb: FAILED: $*" >&2
    exit 1
}
quietly() {
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        fail "$*"
    }
}
# field PACKAGE NAME REGEX: checks a field of the package's control file.
field() {
    local said
    said=$(dpkg-deb --field "$1" "$2")
    [[ $said =~ $3 ]] || fail "$1 says $2: $said, not $3"
}

quietly cpack --config "$build/CPackConfig.cmake" -B "$work"
architecture=$(dpkg --print-architecture)
development=$work/libcoppice-dev_$version-1_$architecture.deb
[ -s "$development" ] || fail "no $development: $(ls "$work")"
field "$development" Package "^libcoppice-dev\$"
field "$development" Version "^${version//./\\.}-1\$"
field "$development" Depends "(^|, )zlib1g-dev"

dpkg-deb --contents "$development" >"$work/contents"
for file in usr/include/coppice/coppice.hpp usr/include/coppice/version.hpp libcoppice.a \
    coppiceConfig.cmake coppice.pc; do
    grep -qF "$file" "$work/contents" || fail "$file is not in libcoppice-dev"
done
if grep -qF libcoppice_tls.a "$work/contents"; then
    field "$development" Depends "(^|, )libssl-dev \\(>= 3\\)"
fi
if grep -qF libcoppice_http2.a "$work/contents"; then
    field "$development" Depends "(^|, )libnghttp2-dev"
fi
if grep -vE ' \./(usr/)?$| \./usr/(include|lib|share)(/|$)' "$work/contents" >&2; then
    fail "libcoppice-dev has files in unexpected places"
fi
grep -F coppice-serve "$work/contents" >&2 && fail "the program is in libcoppice-dev"

dpkg-deb --extract "$development" "$work/root"
quietly cmake -S "$source/tests/package/consumer" -B "$work/consumer" -G Ninja \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/root/usr"
grep -qF "coppice_DIR:PATH=$work/root/" "$work/consumer/CMakeCache.txt" ||
    fail "another coppice was found"
quietly cmake --build "$work/consumer"
[ "$("$work/consumer/consumer")" = "answer 42" ] || fail "the consumer is wrong"

if [ "$apps" = 1 ]; then
    server=$work/coppice-serve_$version-1_$architecture.deb
    [ -s "$server" ] || fail "no $server: $(ls "$work")"
    field "$server" Package "^coppice-serve\$"
    dpkg-deb --extract "$server" "$work/server"
    [ "$("$work/server/usr/bin/coppice-serve" --version)" = "coppice-serve $version" ] ||
        fail "the packaged coppice-serve does not say $version"
    # libgcc-s1 comes with libstdc++6.
    for library in $(ldd "$work/server/usr/bin/coppice-serve" | awk '$3 ~ "^/" { print $3 }'); do
        package=$(dpkg -S "*${library#/usr}" | sed -n '1s/:.*//p')
        [ "$package" = libgcc-s1 ] || field "$server" Depends "(^|, )${package//+/\\+}( |,|\$)"
    done
    dpkg-deb --contents "$server" >"$work/contents"
    grep -F /include/ "$work/contents" >&2 && fail "headers beside a program"
fi
echo "deb: packages of $version are as expected"
