#!/usr/bin/env bash
# A compiler or a mode that cannot work is rejected with one sentence, which is the first error.
#
#   requirements_test.sh COMPILER INCLUDE
set -euo pipefail

compiler=$1 include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "requirements: FAILED: $*" >&2
    exit 1
}
# refused SENTENCE HEADER FLAGS...: including HEADER fails, and SENTENCE is the first error.
refused() {
    local sentence=$1 header=$2
    shift 2
    echo "#include <coppice/$header>" >"$work/program.cpp"
    if "${tried:-$compiler}" -fsyntax-only -I "$include" "$@" "$work/program.cpp" \
        >"$work/log" 2>&1; then
        fail "<coppice/$header> compiles with $*"
    fi
    grep -qF "$sentence" <<<"$(grep -m 1 'error:' "$work/log")" || {
        head -n 5 "$work/log" >&2
        fail "<coppice/$header> with $* is refused without: $sentence"
    }
    echo "requirements: ok: <coppice/$header> with $*"
}

cd "$include/coppice"
for header in *.hpp base/*.hpp base/internal/*.hpp; do
    [[ $header == *_model.hpp ]] || refused 'coppice needs C++20' "$header" -std=c++17
done
refused 'coppice needs exceptions' coppice.hpp -std=c++20 -fno-exceptions
if grep -q clang <<<"$("$compiler" --version)"; then
    refused 'coppice needs clang 16 or newer' coppice.hpp -std=c++20 -U__clang_major__ \
        -D__clang_major__=15 -Wno-builtin-macro-redefined
else
    refused 'coppice needs g++ 12 or newer' coppice.hpp -std=c++20 -U__GNUC__ -D__GNUC__=11 \
        -Wno-builtin-macro-redefined
fi
for old in clang++-14 g++-11; do
    if command -v "$old" >/dev/null; then
        tried=$old refused "or newer" coppice.hpp -std=c++20
    else
        echo "requirements: not tried: $old, which is not installed"
    fi
done
