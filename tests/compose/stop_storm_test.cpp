// Plan: other threads stop, again and again, everything that joins several operations, awaited in
// every way. The waiter destroys the operation as soon as it has completed, while the requesters
// may still be returning from it.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "sanitizers.hpp"
#include "until_stopped.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::test::endless_timers;
using coppice::test::until_stopped;
using coppice::this_thread::sync_wait;

// Rounds per shape, way of waiting, and number of threads. A second ends them early, because other
// tests need the processors.
constexpr int rounds_most = coppice::test::under_thread_sanitizer    ? 400
                            : coppice::test::under_address_sanitizer ? 1500
                                                                     : 12'500;

void wait_a_little(int tries) {
    if (tries > 100) {
        std::this_thread::yield();
    } else {
        coppice::internal::spin_hint();
    }
}

// What a round stops: one thread stops the whole, through its source or its scope. Sometimes a
// second thread, if there is one, stops one child.
struct round {
    coppice::inplace_stop_source source;
    coppice::inplace_stop_source child;
    ex::counting_scope scope;
    bool stops_scope = false;
};

// Threads that request the stops of a round as soon as it has begun, or a little later.
class stoppers {
public:
    explicit stoppers(std::size_t count) {
        for (std::size_t i = 0; i != count; ++i) threads_.emplace_back([this, i] { run(i == 0); });
    }
    ~stoppers() {
        begin(nullptr);
        for (std::thread& t : threads_) t.join();
    }
    bool goes_on(int rounds) const {
        return rounds < 100 || (rounds < rounds_most && std::chrono::steady_clock::now() < end_);
    }
    void begin(round* r) {
        round_ = r;
        done_.store(0, coppice::internal::relaxed);
        turn_.fetch_add(1, coppice::internal::release);
    }
    // The round's sources are in use until then. The operations may be gone long before.
    void wait() {
        while (done_.load(coppice::internal::acquire) != threads_.size()) std::this_thread::yield();
    }

private:
    void run(bool first) {
        unsigned delay = first ? 7919 : 104'729;
        for (unsigned turn = 0;; ++turn) {
            for (int tries = 0; turn_.load(coppice::internal::acquire) == turn; ++tries) {
                wait_a_little(tries);
            }
            if (round_ == nullptr) return;
            delay = delay * 1'103'515'245u + 12'345u;
            for (unsigned i = delay >> 22; i != 0; --i) coppice::internal::spin_hint();
            if (!first) {
                if (turn % 4 != 0) round_->child.request_stop();
            } else if (round_->stops_scope) {
                round_->scope.request_stop();
            } else {
                round_->source.request_stop();
            }
            done_.fetch_add(1, coppice::internal::release);
        }
    }
    coppice::internal::atomic<unsigned> turn_{0};
    coppice::internal::atomic<std::size_t> done_{0};
    round* round_ = nullptr;  // published by turn_
    const std::chrono::steady_clock::time_point end_ =
        std::chrono::steady_clock::now() + std::chrono::seconds(1);
    std::vector<std::thread> threads_;
};

// The shapes.
template <class Sndr>
auto limited(Sndr sndr) {
    return ex::write_env(ex::timeout(std::move(sndr), ex::time_span(1)),
                         ex::prop(ex::get_timed_scheduler, endless_timers()));
}
// A child that can be stopped on its own.
auto lonely(round& r) {
    return ex::stop_when(until_stopped(), r.child.get_token());
}
struct all {
    static auto make(round& r) { return ex::when_all(lonely(r), until_stopped()); }
};
struct any {
    static auto make(round& r) { return ex::when_any(lonely(r), until_stopped()); }
};
struct range {
    static auto make(round& r) {
        const coppice::inplace_stop_token tokens[] = {r.child.get_token(), {}};
        std::vector<decltype(lonely(r))> sndrs;
        for (const auto& token : tokens) sndrs.push_back(ex::stop_when(until_stopped(), token));
        return ex::when_all_range(std::move(sndrs));
    }
};
struct limit {
    static auto make(round& r) { return limited(lonely(r)); }
};
struct futures {
    static auto make(round& r) {
        return ex::when_any(ex::spawn_future(lonely(r), r.scope.get_token()),
                            ex::spawn_future(until_stopped(), r.scope.get_token()));
    }
};
struct nested {
    static auto make(round& r) {
        return ex::when_all(
            ex::when_any(limited(until_stopped()), lonely(r)), until_stopped(),
            ex::when_all_range(std::vector(2, ex::when_any(until_stopped(), until_stopped()))));
    }
};

template <class Shape>
auto stopped_by(round& r) {
    return ex::stop_when(Shape::make(r), r.source.get_token()) |
           ex::upon_stopped([]() noexcept {}) | ex::upon_error([](auto&&) noexcept {});
}

// A thread blocks until the operation has completed.
struct sync_wait_for {
    template <class Shape>
    static void run(stoppers& team) {
        for (int i = 0; team.goes_on(i); ++i) {
            round r;
            team.begin(&r);
            sync_wait(stopped_by<Shape>(r));
            team.wait();
            sync_wait(r.scope.join());
        }
    }
};

// A task awaits the operation, and hops back to its loop.
struct await_in_task {
    template <class Shape>
    static ex::task<void> all_rounds(stoppers& team) {
        for (int i = 0; team.goes_on(i); ++i) {
            round r;
            team.begin(&r);
            co_await stopped_by<Shape>(r);
            team.wait();
            co_await r.scope.join();
        }
    }
    template <class Shape>
    static void run(stoppers& team) {
        sync_wait(all_rounds<Shape>(team));
    }
};

// Spawns it and waits for its future: at once, after its end, or about when it ends.
struct spawn_as_future {
    template <class Shape>
    static void run(stoppers& team) {
        for (int i = 0; team.goes_on(i); ++i) {
            round r;
            team.begin(&r);
            coppice::internal::atomic<bool> ended{false};
            auto future = ex::spawn_future(stopped_by<Shape>(r) | ex::then([&]() noexcept {
                                               ended.store(true, coppice::internal::relaxed);
                                           }),
                                           r.scope.get_token());
            for (int tries = 0; i % 4 != 0 && !ended.load(coppice::internal::relaxed); ++tries)
                wait_a_little(tries);
            sync_wait(std::move(future));
            team.wait();
            sync_wait(r.scope.join());
        }
    }
};

// Spawns it into a scope that a thread stops: alone, or in a task on a loop.
struct spawn_in_scope {
    template <class Shape>
    static ex::task<void> one(round& r) {
        co_await stopped_by<Shape>(r);
    }
    template <class Shape>
    static void run(stoppers& team) {
        for (int i = 0; team.goes_on(i); ++i) {
            round r;
            r.stops_scope = true;
            team.begin(&r);
            const auto spawned = [&r, i](ex::run_loop::scheduler loop) {
                if (i % 4 == 0) {
                    ex::spawn(stopped_by<Shape>(r), r.scope.get_token());
                } else {
                    ex::spawn(
                        ex::starts_on(loop, one<Shape>(r)) | ex::upon_error([](auto&&) noexcept {}),
                        r.scope.get_token());
                }
                return r.scope.join();
            };
            sync_wait(ex::read_env(ex::get_scheduler) | ex::let_value(spawned));
            team.wait();
        }
    }
};

template <class Shape>
class stop_storm : public testing::Test {
protected:
    template <class Waiter>
    void rage() {
        for (std::size_t threads = 1; threads != 3; ++threads) {
            stoppers team(threads);
            Waiter::template run<Shape>(team);
        }
    }
};
using shapes = testing::Types<all, any, range, limit, futures, nested>;
class shape_names {
public:
    template <class Shape>
    static std::string GetName(int) {
        if (std::is_same_v<Shape, all>) return "when_all";
        if (std::is_same_v<Shape, any>) return "when_any";
        if (std::is_same_v<Shape, range>) return "when_all_range";
        if (std::is_same_v<Shape, limit>) return "timeout";
        if (std::is_same_v<Shape, futures>) return "when_any_of_futures";
        return "nested";
    }
};
TYPED_TEST_SUITE(stop_storm, shapes, shape_names);

TYPED_TEST(stop_storm, a_thread_that_blocks_outlives_it) {
    this->template rage<sync_wait_for>();
}
TYPED_TEST(stop_storm, a_task_that_hops_back_outlives_it) {
    this->template rage<await_in_task>();
}
TYPED_TEST(stop_storm, a_future_outlives_it) {
    this->template rage<spawn_as_future>();
}
TYPED_TEST(stop_storm, a_scope_outlives_it) {
    this->template rage<spawn_in_scope>();
}

}  // namespace
