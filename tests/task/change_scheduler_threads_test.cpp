// A task that has changed its scheduler ends where it was started, however many threads it visits,
// and the thread that waits for it may destroy it at once.
#include <coppice/task/task.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "moving_tasks.hpp"
#include "sanitizers.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::task;
using namespace coppice::test;

// Trees of tasks that move, wait for one another, and are stopped, on a pool and two loops. Each
// ends where it was started, and the test's thread destroys it at once.
class storm {
public:
    ex::task_scheduler home() { return home_.scheduler(); }
    thread_id home_id() const { return home_.id(); }
    task<> tree() {
        co_await move_to(ex::task_scheduler(pool_.get_scheduler()));
        co_await coppice::wait_for_tasks(node(4), node(4), node(4));
    }

private:
    // Returns a random number below `of`.
    static unsigned any(unsigned of) {
        static thread_local unsigned state =
            static_cast<unsigned>(std::hash<thread_id>()(here())) | 1u;
        state = state * 1103515245u + 12345u;
        return (state >> 16) % of;
    }
    ex::task_scheduler any_place() {
        switch (any(4)) {
            case 0:
                return home_.scheduler();
            case 1:
                return other_.scheduler();
            case 2:
                return ex::task_scheduler(ex::inline_scheduler());
            default:
                return ex::task_scheduler(pool_.get_scheduler());
        }
    }
    task<> node(int depth) {
        if (any(4) == 0) co_await move_to(any_place());
        if (depth != 0) {
            switch (any(5)) {
                case 0:
                    co_await node(depth - 1);
                    break;
                case 1:
                    co_await coppice::wait_for_tasks(node(depth - 1), node(depth - 1));
                    break;
                case 2:
                    co_await keeps(depth - 1);
                    break;
                case 3:
                    co_await ex::when_all(node(depth - 1), node(depth - 1));
                    break;
                default: {
                    auto child = node(depth - 1) | ex::then([] { return 1; });
                    static_cast<void>(co_await ex::stopped_as_optional(std::move(child)));
                }
            }
        }
        if (any(4) == 0) co_await move_to(any_place());
        if (any(3) == 0) co_await ex::schedule(any_place());
        if (any(8) == 0) co_await ex::just_stopped();
        if (any(32) == 0) throw 1;
    }
    task<> keeps(int depth) {
        task<> first = node(depth);
        task<> second = node(depth);
        co_await coppice::wait_for_tasks(first, second);
    }

    coppice::thread_pool pool_{2};
    other_thread home_;
    other_thread other_;
};

// Notes where it was completed; the operation then belongs to the test's thread.
class ending_receiver {
    struct environment {
        const ex::task_scheduler* home;
        ex::task_scheduler query(ex::get_start_scheduler_t) const noexcept { return *home; }
    };

public:
    using receiver_concept = ex::receiver_tag;
    ending_receiver(coppice::internal::atomic<bool>& ended, const ex::task_scheduler& home,
                    thread_id& on) noexcept
        : ended_(&ended), home_(&home), on_(&on) {}
    void set_value() && noexcept { end(); }
    void set_error(std::exception_ptr) && noexcept { end(); }
    void set_stopped() && noexcept { end(); }
    environment get_env() const noexcept { return {home_}; }

private:
    void end() noexcept {
        *on_ = here();
        // Pairs with run_and_destroy(), whose thread owns the operation afterwards.
        // edge test.ended (release): this thread no longer uses the operation
        ended_->store(true, coppice::internal::release);
    }
    coppice::internal::atomic<bool>* ended_;
    const ex::task_scheduler* home_;
    thread_id* on_;
};

// Returns the thread on which `body`, which is started on `home`, ended. The calling thread
// destroys the operation at once.
thread_id run_and_destroy(const ex::task_scheduler& home, task<> body) {
    coppice::internal::atomic<bool> ended{false};
    thread_id on;
    auto started = ex::starts_on(home, std::move(body));
    auto operation = ex::connect(std::move(started), ending_receiver(ended, home, on));
    ex::start(operation);
    // edge test.ended (acquire): what the receiver's thread did; pairs with ending_receiver::end()
    while (!ended.load(coppice::internal::acquire)) std::this_thread::yield();
    return on;
}

TEST(change_scheduler, a_third_thread_may_destroy_the_operation_once_it_was_stopped) {
    constexpr int rounds = coppice::test::sanitized ? 500 : 5'000;
    other_thread home;
    other_thread other;
    for (int i = 0; i != rounds; ++i) {
        for (const auto make : {moves_and_stops, moves_and_awaits_one_that_stops,
                                moves_and_waits_for_two, moves_in_line_and_stops}) {
            ASSERT_EQ(run_and_destroy(home.scheduler(), make(other.scheduler())), home.id());
        }
    }
}

TEST(change_scheduler, trees_of_tasks_that_move_and_stop_end_where_they_were_started) {
    constexpr int rounds = coppice::test::sanitized ? 500 : 2'000;
    storm s;
    for (int i = 0; i != rounds; ++i) {
        ASSERT_EQ(run_and_destroy(s.home(), s.tree()), s.home_id());
    }
}

}  // namespace
