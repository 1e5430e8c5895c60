// Lets each part use the objects that the other has made. Prints each failure, and returns 1 after
// any.
#include "seam.hpp"

#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

using namespace coppice;
using seam::part;
namespace ex = coppice::execution;

namespace {

int wrong = 0;

void expect(bool right, const char* what, const part& one, const part& other) {
    if (right) return;
    std::printf("wrong: %s, %s and %s\n", what, one.compiler, other.compiler);
    wrong = 1;
}

template <class T>
T value_of(task<T> work) {
    return std::get<0>(this_thread::sync_wait(std::move(work)).value());
}

task<std::string> talk(io::context& loop, const part& one, const part& other) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket client(loop);
    co_await client.connect(acceptor.local());
    io::tcp::socket server = co_await acceptor.accept();
    std::string words(100'000, 'x');
    std::string said =
        co_await ex::when_all(one.receives(server, words.size()), other.sends_to(client, words));
    co_return said;
}

void tasks_and_senders(const part& one, const part& other) {
    expect(value_of(one.quotes(other.says("a"))) == "'a'", "a task by value", one, other);
    expect(value_of(one.quotes_sender(other.sends("a"))) == "'a!'", "a sender", one, other);
    expect(value_of(one.sums(other.counts_down(3, one, other), one.counts_down(4, other, one)))
                   .value == 7,
           "when_all", one, other);
    expect(value_of(one.counts_down(100'000, other, one)).value == 100'000, "a deep chain", one,
           other);
    expect(value_of(one.catches(other.fails("broken"))) == "caught", "an exception", one, other);
    expect(value_of(one.sees_stop(other.stops())), "a stop", one, other);
    expect(one.layouts() == other.layouts(), "layouts", one, other);
}

void pools_and_contracts(const part& one, const part& other) {
    thread_pool pool(2);
    const auto forked =
        this_thread::sync_wait(ex::starts_on(pool.get_scheduler(), one.forks(15, other, one)));
    expect(std::get<0>(forked.value()).value == 610, "wait_for_tasks", one, other);
    expect(pool.run([&] { return one.forks_plain(20, other); }) == 6765, "fork_join", one, other);
    work_contract_group group(64);
    long runs = 0;
    work_contract contract = one.contract(group, runs);
    contract.schedule();
    other.runs_contracts(group);
    expect(runs == 3, "a contract", one, other);
    inplace_stop_source source;
    const auto request = [](void* asked) {
        static_cast<inplace_stop_source*>(asked)->request_stop();
    };
    expect(one.hears_stop(source.get_token(), request, &source), "a stop callback", one, other);
}

void loops(const part& one, const part& other) {
    const auto words = io::run([&](io::context& loop) { return talk(loop, one, other); });
    expect(words && words->size() == 100'000, "sockets", one, other);
    const auto late =
        io::run([&](io::context& loop) { return one.times_out(other.waits_for_stop(loop)); });
    expect(late == "timed out", "a timeout", one, other);
}

}  // namespace

int main() {
    const part* const parts[] = {&seam::clang_part(), &seam::gcc_part()};
    for (const part* one : parts) {
        for (const part* other : parts) {
            tasks_and_senders(*one, *other);
            pools_and_contracts(*one, *other);
            loops(*one, *other);
        }
    }
    if (wrong == 0) std::puts("as expected");
    return wrong;
}
