#!/usr/bin/env bash
# Makes the single header with its script, compiles a program with it without a warning, and runs
# the program. It needs only one translation unit and -pthread.
#
#   single_header_test.sh SOURCE COMPILER
set -euo pipefail

source=$1 compiler=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$source/scripts/single_header.py" "$folder/coppice_single.hpp"
! grep -n '#include.*coppice' "$folder/coppice_single.hpp" ||
    { echo "single header: FAILED: it includes a part of itself"; exit 1; }
"$compiler" -std=c++20 -O1 -Wall -Wextra -Werror -pthread -I"$folder" \
    "$source/tests/package/single/program.cpp" -o "$folder/program"
said=$("$folder/program")
[ "$said" = "1 22" ] || { echo "single header: FAILED: the program said '$said'"; exit 1; }
echo "single header: as expected"
