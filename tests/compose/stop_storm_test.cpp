// Plan: stops from other threads, again and again, of everything that joins several operations;
// awaited in every way. Whoever waits destroys the operation as soon as it has completed, while the
// stopping threads may still be on their way out of it.
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "sanitizers.hpp"
#include "until_stopped.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::test::endless_timers;
using coppice::test::until_stopped;
using coppice::this_thread::sync_wait;

// Of each shape, in each way of waiting, with each number of threads.
constexpr int rounds = coppice::test::under_thread_sanitizer    ? 400
                       : coppice::test::under_address_sanitizer ? 1500
                                                                : 12'500;

// Threads that request the stops of a round as soon as it has begun, or a little later.
template <std::size_t Count>
class stoppers {
public:
    stoppers() {
        for (std::size_t i = 0; i != Count; ++i) threads_[i] = std::thread([this, i] { run(i); });
    }
    ~stoppers() {
        begin(nullptr);
        for (std::thread& t : threads_) t.join();
    }

    // What is stopped in a round: a source for each thread, and a scope.
    struct round {
        std::array<coppice::inplace_stop_source, Count> sources;
        ex::counting_scope scope;
        bool stops_scope = false;
        // Sndr, stopped by every thread.
        template <class Sndr>
        auto stop(Sndr sndr) {
            if constexpr (Count == 1) {
                return ex::stop_when(std::move(sndr), sources[0].get_token());
            } else {
                return ex::stop_when(ex::stop_when(std::move(sndr), sources[0].get_token()),
                                     sources[1].get_token());
            }
        }
    };
    void begin(round* r) {
        round_ = r;
        done_.store(0, std::memory_order_relaxed);
        turn_.fetch_add(1, std::memory_order_release);
    }
    // Until then the round's sources are in use; what they stopped may be gone long before.
    void wait() {
        while (done_.load(std::memory_order_acquire) != Count) std::this_thread::yield();
    }

private:
    void run(std::size_t index) {
        unsigned delay = 7919 * (static_cast<unsigned>(index) + 1);
        for (unsigned turn = 0;; ++turn) {
            for (int tries = 0; turn_.load(std::memory_order_acquire) == turn; ++tries) {
                if (tries > 100) std::this_thread::yield();
            }
            if (round_ == nullptr) return;
            delay = delay * 1103515245u + 12345u;
            for (unsigned i = delay >> 22; i != 0; --i) coppice::spin_hint();
            if (round_->stops_scope && index == 0) {
                round_->scope.request_stop();
            } else {
                round_->sources[index].request_stop();
            }
            done_.fetch_add(1, std::memory_order_release);
        }
    }
    std::atomic<unsigned> turn_{0};
    std::atomic<std::size_t> done_{0};
    round* round_ = nullptr;  // published by turn_
    std::array<std::thread, Count> threads_;
};

// The shapes. A scope is there for those that spawn.
template <class Sndr>
auto limited(Sndr sndr) {
    return ex::write_env(ex::timeout(std::move(sndr), ex::time_span(1)),
                         ex::prop(ex::get_timed_scheduler, endless_timers()));
}
struct all {
    static auto make(ex::counting_scope&) { return ex::when_all(until_stopped(), until_stopped()); }
};
struct any {
    static auto make(ex::counting_scope&) { return ex::when_any(until_stopped(), until_stopped()); }
};
struct range {
    static auto make(ex::counting_scope&) {
        return ex::when_all_range(std::vector<until_stopped>(2));
    }
};
struct limit {
    static auto make(ex::counting_scope&) { return limited(until_stopped()); }
};
struct futures {
    static auto make(ex::counting_scope& scope) {
        return ex::when_any(ex::spawn_future(until_stopped(), scope.get_token()),
                            ex::spawn_future(until_stopped(), scope.get_token()));
    }
};
struct nested {
    static auto make(ex::counting_scope&) {
        return ex::when_all(
            ex::when_any(limited(until_stopped()), until_stopped()), until_stopped(),
            ex::when_all_range(std::vector(2, ex::when_any(until_stopped(), until_stopped()))));
    }
};

template <class Shape, std::size_t Count>
auto stopped_by(typename stoppers<Count>::round& r) {
    return r.stop(Shape::make(r.scope)) | ex::upon_stopped([]() noexcept {}) |
           ex::upon_error([](auto&&) noexcept {});
}

// One thread blocks for it.
struct sync_wait_for {
    template <class Shape, std::size_t Count>
    static void run(stoppers<Count>& all) {
        for (int i = 0; i != rounds; ++i) {
            typename stoppers<Count>::round r;
            all.begin(&r);
            sync_wait(stopped_by<Shape, Count>(r));
            all.wait();
            sync_wait(r.scope.join());
        }
    }
};

// A task awaits it, and hops back to its loop.
struct await_in_task {
    template <class Shape, std::size_t Count>
    static ex::task<void> all_rounds(stoppers<Count>& all) {
        for (int i = 0; i != rounds; ++i) {
            typename stoppers<Count>::round r;
            all.begin(&r);
            co_await stopped_by<Shape, Count>(r);
            all.wait();
            co_await r.scope.join();
        }
    }
    template <class Shape, std::size_t Count>
    static void run(stoppers<Count>& all) {
        sync_wait(all_rounds<Shape, Count>(all));
    }
};

// It is spawned, and its future is waited for: at once, or when it has ended, or nearly so.
struct spawn_as_future {
    template <class Shape, std::size_t Count>
    static void run(stoppers<Count>& all) {
        for (int i = 0; i != rounds; ++i) {
            typename stoppers<Count>::round r;
            all.begin(&r);
            std::atomic<bool> ended{false};
            auto future = ex::spawn_future(
                stopped_by<Shape, Count>(r) | ex::then([&]() noexcept { ended = true; }),
                r.scope.get_token());
            while (i % 4 != 0 && !ended) coppice::spin_hint();
            sync_wait(std::move(future));
            all.wait();
            sync_wait(r.scope.join());
        }
    }
};

// It is spawned into a scope, which a thread stops; by itself, or in a task on a loop.
struct spawn_in_scope {
    template <class Shape, std::size_t Count>
    static ex::task<void> one(typename stoppers<Count>::round& r) {
        co_await stopped_by<Shape, Count>(r);
    }
    template <class Shape, std::size_t Count>
    static void run(stoppers<Count>& all) {
        for (int i = 0; i != rounds; ++i) {
            typename stoppers<Count>::round r;
            r.stops_scope = true;
            all.begin(&r);
            const auto spawned = [&r, i](ex::run_loop::scheduler loop) {
                if (i % 4 == 0) {
                    ex::spawn(stopped_by<Shape, Count>(r), r.scope.get_token());
                } else {
                    ex::spawn(ex::starts_on(loop, one<Shape, Count>(r)) |
                                  ex::upon_error([](auto&&) noexcept {}),
                              r.scope.get_token());
                }
                return r.scope.join();
            };
            sync_wait(ex::read_env(ex::get_scheduler) | ex::let_value(spawned));
            all.wait();
        }
    }
};

template <class Shape>
class stop_storm : public testing::Test {
protected:
    template <class Waiter>
    void rage() {
        {
            stoppers<1> two_threads;
            Waiter::template run<Shape>(two_threads);
        }
        stoppers<2> three_threads;
        Waiter::template run<Shape>(three_threads);
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
