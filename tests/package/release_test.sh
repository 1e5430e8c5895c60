#!/usr/bin/env bash
# Two clones make the same archive of a release, byte for byte. It has one folder at its top,
# exactly the files of the commit, and a matching checksum. Skips (77) if the tree is not a git
# checkout.
#
#   release_test.sh SOURCE
set -euo pipefail

source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "release: FAILED: $*"
    exit 1
}

if ! git -C "$source" rev-parse --verify HEAD >/dev/null 2>&1; then
    echo "release: skipped: not a git checkout"
    exit 77
fi
commit=$(git -C "$source" rev-parse HEAD)
for clone in one two; do
    git clone -q --no-hardlinks "$source" "$work/$clone" 2>/dev/null || {
        echo "release: skipped: the checkout cannot be cloned"
        exit 77
    }
    git -C "$work/$clone" checkout -q "$commit"
    echo "not in the commit" >"$work/$clone/stray.txt"
    umask $([ $clone = one ] && echo 022 || echo 077)
    TZ=$([ $clone = one ] && echo UTC || echo Asia/Tokyo) "$work/$clone/scripts/release.sh" \
        --output "$work/out_$clone" >/dev/null || fail "the script ended with $?"
done
(cd "$work/out_one" && sha256sum -c --quiet ./*.sha256) || fail "the checksum does not match"
diff -r "$work/out_one" "$work/out_two" || fail "two clones make two archives"
archive=$(echo "$work"/out_one/coppice-*.tar.gz)
name=$(basename "$archive" .tar.gz)
tar -tzf "$archive" >"$work/files"
grep -qx "$name/CMakeLists.txt" "$work/files" || fail "there is no $name/CMakeLists.txt in it"
! grep -v "^$name/" "$work/files" || fail "something lies beside $name/"
! grep 'stray' "$work/files" || fail "the archive has a file that is not in the commit"
status=0
"$work/one/scripts/release.sh" no-such-commit >"$work/said" 2>&1 || status=$?
[ $status -eq 1 ] && grep -q "no commit 'no-such-commit'" "$work/said" ||
    fail "a commit that is not there: $status, $(cat "$work/said")"
echo "release: as expected"
