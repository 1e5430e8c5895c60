#!/usr/bin/env bash
# A million immediate completions in every loop of room exec use constant stack, at every
# optimization level and under the address sanitizer: no loop relies on tail calls.
#
#   constant_stack_test.sh COMPILER INCLUDE
set -euo pipefail

compiler=$1 include=$2
source=$include/../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/loops.cpp" <<'CODE'
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/repeat.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/exec/when_any.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

constexpr int million = 1'000'000;
constexpr std::uintptr_t stack_max = 32 * 1024;  // ten bytes a round would be 10 MB

// Counts rounds, and remembers between which addresses their stack frames lay.
int rounds = 0;
std::uintptr_t lowest = 0;
std::uintptr_t highest = 0;
[[gnu::noinline]] int next_round() noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (rounds == 0) lowest = highest = here;
    lowest = here < lowest ? here : lowest;
    highest = here > highest ? here : highest;
    return ++rounds;
}
void check(const char* loop) {
    std::printf("%s: %d rounds, %zu bytes of stack\n", loop, rounds, std::size_t(highest - lowest));
    if (rounds != million || highest - lowest > stack_max) std::exit(1);
    rounds = 0;
}

// The control: what does recurse is seen to.
[[gnu::noinline]] int recurse(int n) noexcept {
    volatile char kept[16] = {};
    const int round = next_round();
    return n == 1 ? round : recurse(n - 1) + kept[0];
}
void check_control() {
    recurse(10'000);
    std::printf("a recursion: %d rounds, %zu bytes\n", rounds, std::size_t(highest - lowest));
    if (highest - lowest <= stack_max) std::exit(1);
    rounds = 0;
}

// Fails until the last round.
class fails {
public:
    using sender_concept = ex::sender_tag;
    fails() noexcept = default;
    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            if (next_round() == million) {
                ex::set_value(static_cast<Rcvr&&>(rcvr_));
            } else {
                ex::set_error(static_cast<Rcvr&&>(rcvr_), 1);
            }
        }

    private:
        Rcvr rcvr_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(), ex::set_error_t(int)>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(static_cast<Rcvr&&>(rcvr));
    }
};

// A coroutine that awaits senders.
struct coroutine {
    struct promise_type : ex::with_awaitable_senders<promise_type> {
        coroutine get_return_object() noexcept {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void unhandled_exception() noexcept { std::abort(); }
        void return_void() noexcept {}
    };
    std::coroutine_handle<promise_type> handle;
};
coroutine awaits(int n) {
    for (int i = 0; i != n; ++i) {
        co_await (ex::just(i) | ex::then([](int) noexcept { next_round(); }));
    }
}

int main() {
    check_control();
    const auto last = []() noexcept { return next_round() == million; };
    sync_wait(ex::just() | ex::then(last) | ex::repeat_until());
    check("repeat_until");
    sync_wait(ex::just() | ex::let_value([last]() noexcept { return ex::just(last()); }) |
              ex::repeat_until());
    check("repeat_until of let_value");
    sync_wait(ex::when_all(ex::just() | ex::then(last), ex::just()) | ex::repeat_until());
    check("repeat_until of when_all");
    sync_wait(ex::when_any(ex::just() | ex::then(last)) | ex::repeat_until());
    check("repeat_until of when_any");
    sync_wait(ex::read_env(ex::get_scheduler) | ex::let_value([last](auto sch) noexcept {
                  return ex::schedule(sch) | ex::then(last) | ex::repeat_until();
              }));
    check("repeat_until of schedule");
    sync_wait(ex::retry(fails()));
    check("retry");
    const auto one = ex::just() | ex::then([]() noexcept { next_round(); });
    sync_wait(ex::when_all_range(std::vector(million, one)));
    check("when_all_range");
    const coroutine loop = awaits(million);
    loop.handle.resume();
    loop.handle.destroy();
    check("co_await of senders");
    ex::simple_counting_scope scope;
    for (int i = 0; i != million; ++i) ex::spawn(one, scope.get_token());
    sync_wait(scope.join());
    check("spawn");
}
CODE
# The library's sources are compiled once.
for file in "$source"/base/*.cpp "$source/exec/deadline.cpp"; do
    "$compiler" -std=c++20 -O1 -I "$include" -c "$file" -o "$work/$(basename "$file" .cpp).o"
done
for flags in -O0 -O1 -O2 -O3 "-O1 -fsanitize=address,undefined"; do
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 $flags -I "$include" "$work/loops.cpp" "$work"/*.o -o "$work/loops"
    echo "$flags"
    "$work/loops"
done
