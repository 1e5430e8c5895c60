#!/usr/bin/env bash
# docs/names.md lists exactly the common names that a program cannot declare beside the library.
#
#   collisions_test.sh COMPILER INCLUDE
#
# A generated source declares and uses each common name as a type, a function, or a variable after
# using-directives, one name per line. The names on the lines that the compiler rejects are the
# collisions.
set -euo pipefail

compiler=$1 include=$2
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
page=$here/../../docs/names.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

# Collects the names: those of the pages beside this script, and more.
{
    sed -n 's/^struct \([a-z_0-9]*\) {};$/\1/p' "$here"/*words.hpp
    tr ' ' '\n' <"$here/usual_names.txt"
} | sort -u >"$work/names"

# documented COLUMN PATTERN: prints the names of the rows of docs/names.md whose column matches.
documented() {
    awk -F '|' -v column="$1" -v pattern="^ $2 \$" '
        /^## / { inside = $0 == "## Known collisions" }
        inside && $column ~ pattern {
            while (match($2, /`[^`]*`/)) {
                print substr($2, RSTART + 1, RLENGTH - 2)
                $2 = substr($2, RSTART + RLENGTH)
            }
        }' "$page" | sort -u
}

# refused FILE: prints the names on the lines that the compiler rejects. Each line of FILE ends with
# its name.
refused() {
    local flags=()
    case $("$compiler" --version) in
        *clang*) flags=(-ferror-limit=0) ;;
    esac
    { "$compiler" -std=c++20 -fsyntax-only "${flags[@]}" -I "$include" "$1" 2>&1 || true; } |
        sed -n "s|^$1:\([0-9]*\):.* error: .*|\1|p" | sort -nu >"$work/lines"
    awk 'NR == FNR { line[$1]; next } FNR in line { print $NF }' "$work/lines" "$1" | sort -u
}

# collisions KIND HEADER NAMESPACE...: prints the names that a program cannot use as a KIND.
collisions() {
    local kind=$1 header=$2 line
    shift 2
    {
        echo "#include <coppice/$header.hpp>  // the_header"
        echo "namespace coppice::execution {}  // the_header"
        echo "class program;  // the_header"
        printf 'using namespace %s;  // the_header\n' "$@"
        case $kind in
            type) line='struct & {}; void takes(&\&); // &' ;;
            function) line='int &(program*); int calls_&(program* p) { return &(p); } // &' ;;
            variable) line='int & = 1; int reads_&() { return &; } // &' ;;
        esac
        sed "s|.*|$line|" "$work/names"
    } >"$work/page.cpp"
    refused "$work/page.cpp"
}

failed=0
# same WHAT EXPECTED FOUND: checks that two lists of names are equal.
same() {
    [ "$2" = "$3" ] && return
    printf '%s: found (>), or documented and not found (<):\n' "$1"
    diff <(echo "$2") <(echo "$3") || true
    failed=1
}
both() { printf '%s\n' "$1" "$2" | sed '/^$/d' | sort -u; }

ours=$(documented 3 'coppice(::execution)?')
systems=$(documented 3 'the system')
[ "$(wc -w <<<"$ours")" -ge 20 ] || { echo "docs/names.md: no table of collisions" && exit 1; }

# The whole library. A function may share its name with a function template of the library.
opened=(coppice coppice::execution)
same "types" "$(both "$ours" "$systems")" "$(collisions type coppice "${opened[@]}")"
same "variables" "$(both "$ours" "$systems")" "$(collisions variable coppice "${opened[@]}")"
same "functions" "" "$(comm -13 <(echo "$ours") <(collisions function coppice "${opened[@]}"))"

# Opening namespace std too adds no collision beyond those of std alone and of coppice alone.
for kind in type function; do
    apart=$(both "$(collisions $kind coppice "${opened[@]}")" "$(collisions $kind coppice std)")
    same "${kind}s beside std" "$apart" "$(collisions $kind coppice std "${opened[@]}")"
done

# Every other umbrella collides with the names in its rows, and with no name outside the table.
for path in "$include"/coppice/*.hpp; do
    header=$(basename "$path" .hpp)
    [ "$header" != coppice ] || continue
    found=$(collisions type "$header" "${opened[@]}")
    own=$(comm -12 <(both "$ours" "$systems") <(documented 4 "(.*, )?$header.hpp(, .*)?"))
    same "$header.hpp, its own" "" "$(comm -23 <(echo "$own") <(echo "$found"))"
    same "$header.hpp" "" "$(comm -13 <(both "$ours" "$systems") <(echo "$found"))"
done

# Names of std that are ambiguous without std:: if a program opens coppice too.
{
    for name in algorithm any array atomic barrier bitset charconv chrono complex concepts \
        condition_variable coroutine deque exception filesystem fstream functional future \
        initializer_list iomanip iostream iterator latch limits list locale map memory \
        memory_resource mutex new numeric optional ostream queue random ranges ratio regex \
        scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept \
        stop_token streambuf string string_view system_error thread tuple type_traits typeindex \
        typeinfo unordered_map unordered_set utility valarray variant vector coppice/coppice; do
        case $name in
            coppice/*) echo "#include <$name.hpp>  // the_header" ;;
            *) echo "#include <$name>  // the_header" ;;
        esac
    done
    printf 'using namespace %s;  // the_header\n' std "${opened[@]}"
    for name in this_thread chrono filesystem pmr ranges views placeholders; do
        echo "namespace probe_$name { namespace alias = $name; } // $name"
    done
    for name in $(cat "$here/std_names.txt"); do
        echo "namespace probe_$name { using ::$name; } // $name"
    done
} >"$work/std.cpp"
same "names of std" "$(documented 3 std)" "$(refused "$work/std.cpp")"

exit $failed
