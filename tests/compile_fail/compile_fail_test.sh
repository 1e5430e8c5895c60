#!/usr/bin/env bash
# A file must be refused by the compiler, for the reason its first line states: `// expect: REGEX`.
#
#   compile_fail_test.sh COMPILER INCLUDE FILE
set -euo pipefail

compiler=$1 include=$2 file=$3
expected=$(sed -n '1s|^// expect: ||p' "$file")
if [ -z "$expected" ]; then
    echo "$file:1: the first line must be '// expect: REGEX'"
    exit 1
fi
flags=(-std=c++20 -Wall -Wextra -Werror -fsyntax-only)
if said=$("$compiler" "${flags[@]}" -I "$include" "$file" 2>&1); then
    echo "$file: compiled, but must not"
    exit 1
fi
# Only what the compiler calls an error counts: a regex may not match a line that it merely quotes.
if ! grep -E '(fatal )?error:' <<<"$said" | grep -Eq -- "$expected"; then
    printf '%s: refused, but not with "%s":\n%s\n' "$file" "$expected" "$said"
    exit 1
fi
