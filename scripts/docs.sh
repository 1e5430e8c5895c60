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
# Pages missing from the navigation come last, under their titles.
guide=$root/build/mkdocs.yml
{
    sed -E -e "s#^docs_dir: .*#docs_dir: $root/docs#" \
        -e "s#custom_dir: .*#custom_dir: $root/scripts/site/theme#" "$root/scripts/site/mkdocs.yml"
    for page in "$root"/docs/*.md; do
        grep -q ": $(basename "$page")\$" "$root/scripts/site/mkdocs.yml" && continue
        title=$(sed -n '/^# /{s///p;q}' "$page" | tr -d '"')
        printf '  - "%s": %s\n' "${title:-$(basename "$page" .md)}" "$(basename "$page")"
    done
} >"$guide"
mkdocs build --quiet --clean --config-file "$guide" --site-dir "$site"
# A browser does not let a page opened from a file read other files. Therefore the search index is
# also written as a script.
{
    printf 'window.search_index = '
    cat "$site/search/search_index.json"
} >"$site/search/search_index.js"
# The pages of Debian's theme name a version of jQuery other than the one it ships.
wanted=$site/js/jquery-3.6.0.min.js
[ -e "$wanted" ] || cp "$site"/js/jquery-*.min.js "$wanted"
# Files outside docs/ that pages link to are copied beside the pages.
(cd "$root" && cp --parents -t "$site" examples/*.cpp include/coppice/*/{PROTOCOL,README}.md)
find "$site" -maxdepth 2 -name '*.html' -not -path "$site/reference/*" -exec \
    sed -i -E 's#href="\.\./((\.\./)?(examples|include)/)#href="\1#g' {} +
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
