#!/usr/bin/env bash
# The compiler must reject FILE for the reason in its first line, `// expect: REGEX`. The next lines
# may state the number of errors, `// errors: N`, and other text of the compiler's output,
# `// says: REGEX`. A regex continues in lines that begin with `//     `, without these blanks.
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
# Only errors count: the regex must not match a source line that the compiler merely quotes.
if ! grep -Eq -- "$expected" <<<"$(grep -E '(fatal )?error:' <<<"$said")"; then
    printf '%s: refused, but not with "%s":\n%s\n' "$file" "$expected" "$said"
    exit 1
fi
# The library's own messages are pinned: exactly this many errors, with these words.
errors=$(sed -n 's|^// errors: ||p' "$file")
count=$(grep -Ec '(fatal )?error:' <<<"$said")
if [ -n "$errors" ] && [ "$errors" -ne "$count" ]; then
    printf '%s: %s error(s), not %s:\n%s\n' "$file" "$count" "$errors" "$said"
    exit 1
fi
while IFS= read -r words; do
    if ! grep -Eq -- "$words" <<<"$said"; then
        printf '%s: refused without saying "%s":\n%s\n' "$file" "$words" "$said"
        exit 1
    fi
done < <(awk '/^\/\/ says: / { if (said) print said; said = substr($0, 10); next }
    said && /^\/\/     / { sub(/^\/\/ +/, ""); said = said $0; next }
    said { print said; said = "" }
    END { if (said) print said }' "$file")
