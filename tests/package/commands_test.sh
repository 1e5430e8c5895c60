#!/usr/bin/env bash
# The commands at the root pass shellcheck, and reject wrong arguments before they do any work.
#
#   commands_test.sh SOURCE
set -euo pipefail

source=$1
cd /  # the commands work from anywhere
scripts=("$source"/{run,test,bench,.ci/run} "$source"/scripts/*.sh "$source"/tests/*/*.sh)

fail() {
    echo "commands: FAILED: $*"
    exit 1
}
# ends_with STATUS OUTPUT-REGEX COMMAND...
ends_with() {
    local expected=$1 regex=$2 status=0 said
    shift 2
    said=$("$@" </dev/null 2>&1) || status=$?
    [ $status -eq "$expected" ] || fail "$* ended with $status, not $expected: $said"
    grep -qE -- "$regex" <<<"$said" || fail "$* did not say '$regex': $said"
}

for script in "${scripts[@]}"; do
    [ -x "$script" ] || [[ $script == */common.sh ]] || fail "$script is not executable"
    bash -n "$script" || fail "$script"
done
if command -v shellcheck >/dev/null; then
    shellcheck -x "${scripts[@]}" || fail "shellcheck has findings"
fi

ends_with 0 '^usage: ./test' "$source/test" --help
ends_with 0 '^usage: ./test' "$source/.ci/run" --help
ends_with 2 "unknown argument '--bogus'" "$source/test" --bogus
ends_with 2 "no stage 'bogus'" "$source/test" --stage bogus
ends_with 2 'needs a name' "$source/test" --stage
ends_with 2 'exclude each other' "$source/test" --quick --stage gcc
ends_with 0 '^usage: ./bench' "$source/bench" --help
ends_with 2 "unknown argument '--bogus'" "$source/bench" --bogus
ends_with 2 'exclude each other' "$source/bench" --quick --tiny
ends_with 2 'needs a commit' "$source/bench" --compare
ends_with 2 'no such commit' "$source/bench" --compare bogus
ends_with 2 'nothing to compare' "$source/bench" --tiny --compare HEAD
ends_with 2 "unknown package set 'bogus'" "$source/scripts/packages.sh" bogus
ends_with 2 'usage:' "$source/scripts/packages.sh"

# The workflow runs each stage of ./test, and no other.
stages=$(sed -n 's/^\(stages\|more\)=(\(.*\))$/\2/p' "$source/test" | paste -s -d ' ')
matrix=$(sed -n 's/^ *stage: \[\(.*\)\]$/\1/p' "$source/.github/workflows/test.yml")
[ "$stages" = "${matrix//,/}" ] || fail "the workflow's stages are '$matrix', ./test has '$stages'"
echo "commands: all as expected"
