// One part, compiled by the compiler in the name of SEAM_PART: clang_part or gcc_part.
#include "seam.hpp"

#include <chrono>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace seam {
namespace {

using namespace coppice;

// An awaitable of the program itself, whose await_suspend() returns a bool.
class immediate {
public:
    explicit immediate(std::string words) : words_(std::move(words)) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
    std::string await_resume() { return std::move(words_); }

private:
    std::string words_;
};

task<std::string> says(std::string words) {
    std::string said = co_await immediate(std::move(words));
    co_return co_await ex::just(std::move(said));
}
task<std::string> quotes(task<std::string> inner) {
    std::string said = co_await std::move(inner);
    co_return "'" + said + "'";
}
task<std::string> quotes_sender(text_sender inner) {
    std::string said = co_await std::move(inner);
    co_return "'" + said + "'";
}
text_sender sends(std::string words) {
    return text_sender(says(std::move(words)) |
                       ex::then([](std::string said) { return said + "!"; }));
}
task<number> sums(task<number> one, task<number> other) {
    const auto [a, b] = co_await ex::when_all(std::move(one), std::move(other));
    co_return number{a.value + b.value};
}
task<number> counts_down(long from, const part& other, const part& self) {
    if (from == 0) co_return number{0};
    const number below = co_await other.counts_down(from - 1, self, other);
    co_return number{below.value + 1};
}
task<number> forks(long n, const part& other, const part& self) {
    if (n < 2) co_return number{n};
    const auto [a, b] =
        co_await wait_for_tasks(other.forks(n - 1, self, other), self.forks(n - 2, other, self));
    co_return number{a.value + b.value};
}
task<> fails(std::string words) {
    co_await ex::just();
    throw std::system_error(std::make_error_code(std::errc::io_error), words);
}
task<std::string> catches(task<> failing) {
    std::string said = "nothing";
    try {
        co_await std::move(failing);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::io_error) said = "caught";
    }
    co_return said;
}
task<> stops() {
    co_await ex::just_stopped();
}
task<bool> sees_stop(task<> stopping) {
    const bool went_on = co_await (std::move(stopping) | ex::then([] { return true; }) |
                                   ex::upon_stopped([] { return false; }));
    co_return !went_on;
}
task<std::string> receives(io::tcp::socket& from, std::size_t bytes) {
    std::string words(bytes, '\0');
    std::size_t have = 0;
    while (have < bytes) {
        const auto rest = std::as_writable_bytes(std::span(words)).subspan(have);
        have += co_await from.receive(rest);
    }
    co_return words;
}
task<> sends_to(io::tcp::socket& to, std::string words) {
    co_await to.send_all(std::as_bytes(std::span(words)));
}
task<std::string> times_out(task<> endless) {
    std::string said = "it ended";
    try {
        co_await ex::timeout(std::move(endless), std::chrono::milliseconds(1));
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::timed_out) said = "timed out";
    }
    co_return said;
}
task<> waits_for_stop(io::context& loop) {
    io::timer timer(loop);
    co_await timer.wait_for(std::chrono::hours(1));
}
long forks_plain(long n, const part& other) {
    if (n < 2) return n;
    const auto [a, b] = fork_join([n, &other] { return other.forks_plain(n - 1, other); },
                                  [n, &other] { return forks_plain(n - 2, other); });
    return a + b;
}
work_contract contract(work_contract_group& group, long& runs) {
    return group.create_contract([&runs](work_contract_token& token) {
        if (++runs != 3) return token.schedule();
    });
}
void runs_contracts(work_contract_group& group) {
    while (group.execute_next_contract()) {
    }
}
bool hears_stop(inplace_stop_token token, void (*request)(void*), void* source) {
    bool heard = false;
    const auto hear = [&heard] { heard = true; };
    inplace_stop_callback<decltype(hear)> callback(token, hear);
    request(source);
    return heard;
}
std::vector<std::size_t> layouts() {
    const auto of = []<class... T>() {
        return std::vector<std::size_t>{sizeof(T)..., alignof(T)...};
    };
    using just_text = decltype(ex::just(std::string()));
    using scheduled = decltype(ex::schedule(std::declval<io::context&>().get_scheduler()));
    const auto map = [](std::string s) { return s; };
    return of.template
    operator()<task<std::string>, task<>, task<std::string>::promise_type, task<>::promise_type,
               text_sender, ex::any_scheduler, just_text, scheduled,
               decltype(std::declval<just_text>() | ex::then(map)),
               decltype(ex::when_all(std::declval<just_text>(), std::declval<scheduled>())),
               decltype(ex::timeout(std::declval<task<>>(), std::chrono::seconds(1))),
               inplace_stop_source, finite_inplace_stop_source<2>, single_inplace_stop_source,
               stop_source, stop_token, inplace_stop_callback<void (*)()>, work_contract,
               work_contract_group, blocking_work_contract_group, thread_pool, io::context,
               io::timer, io::tcp::socket, io::tcp::acceptor, io::udp::socket, ex::run_loop,
               decltype(std::declval<io::timer&>().wait_for(std::chrono::seconds(1)))>();
}

}  // namespace

const part& SEAM_PART() {
    static const part made{
#if defined(__clang__)
        "clang",
#else
        "gcc",
#endif
        says,        quotes,   quotes_sender,  sends,      sums,
        counts_down, forks,    fails,          catches,    stops,
        sees_stop,   receives, sends_to,       times_out,  waits_for_stop,
        forks_plain, contract, runs_contracts, hears_stop, layouts};
    return made;
}

}  // namespace seam
