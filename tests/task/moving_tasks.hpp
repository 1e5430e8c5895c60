// Tasks that change their scheduler and then stop, for the tests of where they end.
#pragma once

#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <thread>
#include <utility>

namespace coppice::test {

namespace ex = coppice::execution;
using thread_id = std::thread::id;

inline thread_id here() {
    return std::this_thread::get_id();
}

struct other_thread {
    ex::run_loop loop;
    std::thread thread{[this] { loop.run(); }};
    ~other_thread() {
        loop.finish();
        thread.join();
    }
    thread_id id() const { return thread.get_id(); }
    ex::task_scheduler scheduler() { return ex::task_scheduler(loop.get_scheduler()); }
};

inline auto move_to(ex::task_scheduler to) {
    return ex::change_coroutine_scheduler(std::move(to));
}

inline task<> stops() {
    co_await ex::just_stopped();
}
inline task<> moves_and_stops(ex::task_scheduler to) {
    co_await move_to(to);
    co_await ex::just_stopped();
}
inline task<> moves_and_awaits_one_that_stops(ex::task_scheduler to) {
    co_await move_to(to);
    co_await stops();
}
inline task<> moves_and_awaits_senders_below(ex::task_scheduler to) {
    co_await move_to(to);
    co_await ex::when_all(ex::just(), stops());
}
inline task<> moves_and_waits_for_two(ex::task_scheduler to) {
    co_await move_to(to);
    co_await coppice::wait_for_tasks(stops(), moves_and_stops(to));
}
inline task<> moves_twice_and_stops(ex::task_scheduler to) {
    const ex::task_scheduler first = co_await move_to(to);
    co_await move_to(first);
    co_await move_to(to);
    co_await ex::just_stopped();
}
inline task<> moves_in_line_and_stops(ex::task_scheduler to) {
    co_await move_to(ex::task_scheduler(ex::inline_scheduler()));
    co_await ex::schedule(to);  // the task stays there
    co_await ex::just_stopped();
}

}  // namespace coppice::test
