#!/usr/bin/env bash
# Renders the guide and the reference of the headers into build/docs; open build/docs/index.html.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/common.sh"

[ $# -eq 0 ] || {
    say "usage: scripts/docs.sh"
    exit 2
}
need_packages docs
need_build_folder
site=$root/build/docs
version=$(sed -nE 's/^#define COPPICE_VERSION_[A-Z]+ ([0-9]+)$/\1/p' \
    "$root/include/coppice/base/version.hpp" | paste -sd.)

say "the guide"
mkdocs build --quiet --clean --config-file "$root/scripts/site/mkdocs.yml" --site-dir "$site"
# Debian's theme has another version of it than its pages name.
wanted=$site/js/jquery-3.6.0.min.js
[ -e "$wanted" ] || cp "$site"/js/jquery-*.min.js "$wanted"
# What pages link to outside of docs/.
(cd "$root" && cp --parents -t "$site" examples/*.cpp include/coppice/*/PROTOCOL.md)
say "the reference"
(cd "$root" && doxygen - <<END
@INCLUDE = scripts/site/Doxyfile
PROJECT_NUMBER = $version
INPUT = include/coppice
OUTPUT_DIRECTORY = $site
END
)
for page in index.html reference/index.html; do
    [ -s "$site/$page" ] || die "$site/$page was not made"
done
say "open $site/index.html; the reference is $site/reference/index.html"
