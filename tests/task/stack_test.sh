#!/usr/bin/env bash
# Tasks use constant stack, however the compiler implements symmetric transfer. Endless loops of
# awaits and unbounded recursion run on half a megabyte of stack, with and without optimization and
# sanitizers.
#
#   stack_test.sh COMPILER INCLUDE
set -euo pipefail

compiler=$1 include=$2
source=$include/../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/program.cpp" <<'CODE'
#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <cstdio>
#include <optional>
#include <tuple>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::wait_for_tasks;
using coppice::this_thread::sync_wait;

constexpr long awaits = 1'000'000, levels = 100'000;

task<long> one() {
    co_return 1;
}
task<long> one_from_a_sender() {
    co_return co_await ex::just(1L);
}
task<long> loop(task<long> (*child)()) {
    long sum = 0;
    for (long i = 0; i != awaits; ++i) sum += co_await child();
    co_return sum;
}
task<long> waiting_loop() {
    long sum = 0;
    for (long i = 0; i != awaits / 2; ++i) {
        const auto [a, b] = co_await wait_for_tasks(one(), one_from_a_sender());
        sum += a + b;
    }
    co_return sum;
}
task<long> sender_loop() {
    long sum = 0;
    for (long i = 0; i != awaits; ++i) sum += co_await ex::just(1L);
    co_return sum;
}
task<long> deep(long n) {
    if (n == 0) co_return co_await one_from_a_sender() - 1;
    co_return co_await deep(n - 1) + 1;
}
task<long> deep_wait(long n) {
    if (n == 0) co_return 0;
    task<long> kept = one();
    const auto [rest] = co_await wait_for_tasks(kept, deep_wait(n - 1));
    co_return std::move(kept).get() + rest;
}
task<long> deep_wait_first(long n) {
    if (n == 0) co_return co_await one_from_a_sender() - 1;
    const auto [rest, last] = co_await wait_for_tasks(deep_wait_first(n - 1), one());
    co_return rest + last;
}
task<long> deep_throw(long n) {
    if (n == 0) throw n;
    co_return co_await deep_throw(n - 1);
}
task<long> catches(task<long> child) {
    try {
        co_return co_await std::move(child);
    } catch (long n) {
        co_return n;
    }
}
task<long> throwing_loop() {
    long sum = 0;
    for (long i = 0; i != 20'000; ++i) {
        bool caught = false;
        try {
            const auto [a, b] = co_await wait_for_tasks(one(), deep_throw(1));
            sum += a + b;
        } catch (long) {
            caught = true;
        }
        if (caught) sum += co_await catches(deep_throw(1)) + 1;
    }
    co_return sum;
}
task<long> deep_stop(long n) {
    if (n == 0) co_await ex::just_stopped();
    co_return co_await deep_stop(n - 1);
}

bool gives(const char* what, task<long> t, std::optional<long> expected) {
    const auto got = sync_wait(std::move(t));
    const bool right = got.has_value() == expected.has_value() &&
                       (!got.has_value() || std::get<0>(*got) == *expected);
    if (!right) std::printf("%s: wrong\n", what);
    return right;
}

}  // namespace

int main() {
    bool right = gives("ready tasks", loop(&one), awaits);
    right &= gives("tasks that await a ready sender", loop(&one_from_a_sender), awaits);
    right &= gives("waits for two tasks", waiting_loop(), awaits);
    right &= gives("ready senders", sender_loop(), awaits);
    right &= gives("recursion", deep(levels), levels);
    right &= gives("recursion by wait_for_tasks, last", deep_wait(levels), levels);
    right &= gives("recursion by wait_for_tasks, first", deep_wait_first(levels), levels);
    right &= gives("an exception through a recursion", catches(deep_throw(20'000)), 0);
    right &= gives("exceptions one after the other", throwing_loop(), 20'000);
    right &= gives("a stop through a recursion", deep_stop(levels), std::nullopt);
    return right ? 0 : 1;
}
CODE
# The library's sources, except the frame pool, are compiled once.
for file in "$source"/{base,stop}/*.cpp "$source"/exec/{deadline,scope}.cpp; do
    "$compiler" -std=c++20 -O1 -I "$include" -c "$file" -o "$work/$(basename "$file" .cpp)$RANDOM.o"
done
for flags in -O0 -O1 -O2 "-O0 -fsanitize=address,undefined" "-O0 -fsanitize=thread"; do
    echo "$flags"
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 $flags -I "$include" "$work/program.cpp" "$source/task/frame_pool.cpp" \
        "$work"/*.o -pthread -o "$work/program"
    (ulimit -s 512 && "$work/program")
done
