#!/usr/bin/env bash
# A pipeline of just and then costs nothing: at -O2 it compiles to as many instructions as the plain
# expression.
#
#   codegen_test.sh COMPILER INCLUDE
set -euo pipefail

compiler=$1 include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/pipeline.cpp" <<'CODE'
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/then.hpp>

namespace ex = coppice::execution;

class into {
public:
    using receiver_concept = ex::receiver_tag;
    explicit into(int& result) noexcept : result_(&result) {}
    void set_value(int value) && noexcept { *result_ = value; }

private:
    int* result_;
};
template <class Sndr>
int run(Sndr&& sndr) {
    int result;
    auto op = ex::connect(static_cast<Sndr&&>(sndr), into(result));
    ex::start(op);
    return result;
}

extern "C" int plain(int a, int b) { return (a + b) * 3 - 1; }
extern "C" int piped(int a, int b) {
    return run(ex::just(a, b) | ex::then([](int x, int y) noexcept { return x + y; }) |
               ex::then([](int x) noexcept { return x * 3; }) |
               ex::then([](int x) noexcept { return x - 1; }));
}
CODE
"$compiler" -std=c++20 -O2 -S -I "$include" "$work/pipeline.cpp" -o "$work/pipeline.s"

# Counts the instructions of one function: the indented lines between its label and its end.
count() {
    awk -v label="$1:" '$1 == label { inside = 1; next }
        inside && /\.cfi_endproc/ { exit }
        inside && /^\t[a-z]/ { ++n }
        END { print n + 0 }' "$work/pipeline.s"
}
plain=$(count plain) piped=$(count piped)
echo "plain: $plain instructions, just|then|then|then: $piped"
[ "$plain" -gt 0 ] && [ "$piped" -eq "$plain" ]
