#!/usr/bin/env bash
# Makes the source archive of a commit and its checksum. Every machine produces the same bytes.
#
#   scripts/release.sh [--output FOLDER] [COMMIT]
#
# COMMIT is HEAD by default, FOLDER is build/release. Writes coppice-VERSION.tar.gz, in which
# everything is below coppice-VERSION/, and coppice-VERSION.tar.gz.sha256. VERSION comes from the
# header base/version.hpp of that commit. The commit's changelog must have a heading for it.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

usage() { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

folder=$root/build/release commit=
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h)
            usage
            exit 0
            ;;
        --output)
            [ $# -ge 2 ] || { usage >&2; exit 2; }
            folder=$2
            shift
            ;;
        -*)
            say "unknown argument '$1'"
            usage >&2
            exit 2
            ;;
        *)
            [ -z "$commit" ] || { usage >&2; exit 2; }
            commit=$1
            ;;
    esac
    shift
done
commit=${commit:-HEAD}

cd -- "$root"
git rev-parse --quiet --verify "$commit^{commit}" >/dev/null || die "there is no commit '$commit'"
# Everything is read from the commit, nothing from the working tree.
version=$(git show "$commit:include/coppice/base/version.hpp" |
    sed -n 's/^#define COPPICE_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' | paste -sd.)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "commit $commit states no version: '$version'"
changes=$(git show "$commit:CHANGELOG.md")
grep -q "^## ${version//./\\.}\( \|$\)" <<<"$changes" ||
    die "CHANGELOG.md of $commit has no heading for $version"

mkdir -p "$folder"
name=coppice-$version
# git gives each file the commit's time and no owner; gzip -n leaves out its own name and time.
git -c tar.umask=0022 archive --format=tar --prefix="$name/" "$commit" |
    gzip -9 -n >"$folder/$name.tar.gz"
(cd -- "$folder" && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256")
