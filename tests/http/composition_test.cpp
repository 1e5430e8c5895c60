// The rooms compose: every way to wait for an operation, on every scheduler, stopped at any moment.
//
// Plan: one operation moves to a scheduler and answers there. For each scheduler it is awaited in
// each way, with stop requests and deadlines from other threads, at moments drawn from a seed.
// Always: each operation completes once, with its own value or as stopped, where it should, and its
// state is gone. The test is in http because http is the room in which all others meet.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/coppice.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
namespace ex = coppice::execution;

// Threads of the test that belong to no scheduler.
thread_local bool outside = false;

// ---- What is composed -------------------------------------------------------------------------

// What happened to all operations of one test.
struct tally {
    coppice::internal::atomic<int> begun{0};
    coppice::internal::atomic<int> ended{0};   // their states are gone
    coppice::internal::atomic<int> astray{0};  // they ended on a thread that is not the scheduler's
};

// Schedules on Sch and answers `value` there, or operation_canceled if it was stopped before.
template <class Sch>
class answering {
public:
    answering(Sch scheduler, int value, tally& counts) noexcept
        : scheduler_(scheduler), value_(value), counts_(&counts) {}
    answering(const answering& other) noexcept
        : answering(other.scheduler_, other.value_, *other.counts_) {}

    void operator()(completion<int> done) noexcept {
        done_ = done;
        counts_->begun.fetch_add(1, relaxed);
        hop_.construct_with(
            [&]() noexcept { return ex::connect(ex::schedule(scheduler_), receiver(this)); });
        ex::start(hop_.get());
    }

private:
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        explicit receiver(answering* of) noexcept : self(of) {}
        void set_value() noexcept { self->end(no_error); }
        void set_stopped() noexcept {
            self->end(std::make_error_code(std::errc::operation_canceled));
        }
        template <class Error>
        void set_error(Error&&) noexcept {
            self->end(std::make_error_code(std::errc::io_error));
        }
        completion_env get_env() const noexcept { return ex::get_env(self->done_); }
        answering* self;
    };
    void end(std::error_code error) noexcept {
        const completion<int> done = done_;
        const int value = value_;
        if (outside && !error) counts_->astray.fetch_add(1, relaxed);
        tally& counts = *counts_;
        hop_.destroy();
        counts.ended.fetch_add(1, release);
        completion<int> last = done;
        std::move(last)(error, value);  // *this may be gone
    }

    Sch scheduler_;
    int value_;
    tally* counts_;
    completion<int> done_;
    manual_lifetime<ex::connect_result_t<ex::schedule_result_t<Sch>, receiver>> hop_;
};

template <class Sch, class Token = use_await_t>
auto answer(Sch scheduler, int value, tally& counts, Token&& token = {}) {
    return completion_token_transform<void(std::error_code, int)>(
        static_cast<Token&&>(token), answering<Sch>(scheduler, value, counts));
}

// ---- Where it is composed ---------------------------------------------------------------------

template <class Pool>
struct pool_house {
    auto scheduler() { return pool.get_scheduler(); }
    Pool pool{2};
};

struct io_house {
    io_house() : guard(std::in_place, loop), thread([this] { loop.run(); }) {}
    ~io_house() {
        guard.reset();
        thread.join();
    }
    auto scheduler() { return loop.get_scheduler(); }
    io::context loop;
    std::optional<io::context::work_guard> guard;
    std::thread thread;
};

struct run_loop_house {
    ~run_loop_house() {
        loop.finish();
        thread.join();
    }
    auto scheduler() { return loop.get_scheduler(); }
    ex::run_loop loop;
    std::thread thread{[this] { loop.run(); }};
};

// ---- The matrix -------------------------------------------------------------------------------

constexpr int count = 300;

// How one operation ended.
struct outcome {
    coppice::internal::atomic<int> ends{0};
    coppice::internal::atomic<int> stops{0};
    coppice::internal::atomic<int> wrong{
        0};  // the value of another operation, or an unexpected error
    void value(int got, int expected) noexcept {
        if (got != expected) wrong.fetch_add(1, relaxed);
        ends.fetch_add(1, release);
    }
    void stopped() noexcept {
        stops.fetch_add(1, relaxed);
        ends.fetch_add(1, release);
    }
    void error(std::error_code ec) noexcept {
        if (ec == std::errc::operation_canceled) return stopped();
        if (ec == std::errc::timed_out) return stopped();
        wrong.fetch_add(1, relaxed);
        ends.fetch_add(1, release);
    }
    void thrown(std::exception_ptr e) noexcept {
        try {
            std::rethrow_exception(e);
        } catch (const std::system_error& failure) {
            error(failure.code());
        } catch (...) {
            wrong.fetch_add(1, relaxed);
            ends.fetch_add(1, release);
        }
    }
};

template <class House>
class composition : public testing::Test {
protected:
    composition() { outside = true; }

    // Requests stops of two thirds of the operations, in a random order, while `begin(i)` begins
    // them. `wait()` must then see all of them end.
    template <class Begin, class Wait>
    void run(Begin begin, Wait wait) {
        std::thread stopper([this] {
            outside = true;
            std::minstd_rand dice(7);
            for (int n = 0; n != 2 * count; ++n) {
                const auto i = static_cast<std::size_t>(dice() % count);
                if (i % 3 != 0) stops[i].request_stop();
                if (n % 4 == 0) std::this_thread::yield();
            }
        });
        for (int i = 0; i != count; ++i) begin(i);
        wait();
        stopper.join();
        for (int i = 0; i != count; ++i) {
            const outcome& o = ends[static_cast<std::size_t>(i)];
            EXPECT_EQ(o.ends.load(acquire), 1) << "operation " << i;
            EXPECT_EQ(o.wrong.load(relaxed), 0) << "operation " << i;
            if (i % 3 == 0) {
                EXPECT_EQ(o.stops.load(relaxed), 0) << "nobody stopped operation " << i;
            }
        }
        EXPECT_EQ(counts.begun.load(relaxed), counts.ended.load(acquire));
        EXPECT_EQ(counts.astray.load(relaxed), 0);
    }
    void all_ended() {
        for (const outcome& each : ends) {
            while (each.ends.load(acquire) == 0) std::this_thread::yield();
        }
    }
    auto stop_env(int i) {
        return ex::prop(get_stop_token, stops[static_cast<std::size_t>(i)].get_token());
    }
    outcome& end(int i) { return ends[static_cast<std::size_t>(i)]; }

    // Spawned with its stop token; every end is recorded.
    template <class Sender>
    void spawn(int i, Sender sender) {
        outcome& o = end(i);
        ex::spawn(ex::write_env(std::move(sender), stop_env(i)) |
                      ex::then([&o, i](int got) noexcept { o.value(got, i); }) |
                      ex::upon_stopped([&o]() noexcept { o.stopped(); }) |
                      ex::upon_error([&o]<class Error>(Error failure) noexcept {
                          if constexpr (std::is_same_v<Error, std::error_code>) {
                              o.error(failure);
                          } else {
                              o.thrown(failure);
                          }
                      }),
                  scope.get_token());
    }

    std::unique_ptr<outcome[]> own_ends = std::make_unique<outcome[]>(count);
    std::unique_ptr<inplace_stop_source[]> own_stops =
        std::make_unique<inplace_stop_source[]>(count);
    std::span<outcome> ends{own_ends.get(), count};
    std::span<inplace_stop_source> stops{own_stops.get(), count};
    tally counts;
    ex::counting_scope scope;
    House house;  // last: its threads end first
};

using houses = testing::Types<pool_house<thread_pool>, pool_house<queue_pool<mutex_queue>>,
                              pool_house<queue_pool<lockfree_queue>>, pool_house<contract_pool>,
                              io_house, run_loop_house>;
struct house_names {
    template <class House>
    static std::string GetName(int i) {
        static constexpr const char* names[] = {"thread_pool",   "mutex_queue", "lockfree_queue",
                                                "contract_pool", "io",          "run_loop"};
        return names[i];
    }
};
TYPED_TEST_SUITE(composition, houses, house_names);

TYPED_TEST(composition, callbacks_are_called_once_on_the_scheduler) {
    this->run(
        [&](int i) {
            outcome& o = this->end(i);
            answer(this->house.scheduler(), i, this->counts,
                   bind_env(this->stop_env(i), [&o, i](std::error_code ec, int got) {
                       ec ? o.error(ec) : o.value(got, i);
                   }));
        },
        [&] { this->all_ended(); });
}

template <class Sch>
task<int> awaiting(Sch scheduler, int i, tally& counts) {
    const int got = co_await answer(scheduler, i, counts);
    if (outside) counts.astray.fetch_add(1, relaxed);  // a task goes on where it was started
    co_return got;
}

TYPED_TEST(composition, tasks_resume_once_where_they_were_started) {
    this->run(
        [&](int i) {
            const auto scheduler = this->house.scheduler();
            this->spawn(i, ex::starts_on(scheduler, awaiting(scheduler, i, this->counts)));
        },
        [&] { this_thread::sync_wait(this->scope.join()); });
}

TYPED_TEST(composition, senders_complete_once) {
    this->run([&](int i) { this->spawn(i, answer(this->house.scheduler(), i, this->counts)); },
              [&] { this_thread::sync_wait(this->scope.join()); });
}

TYPED_TEST(composition, pairs_of_senders_complete_once_and_their_first_does_too) {
    this->run(
        [&](int i) {
            const auto scheduler = this->house.scheduler();
            const auto one = [&] { return answer(scheduler, i, this->counts); };
            const auto same = [i](int a, int b) noexcept { return a == i && b == i ? i : -1; };
            if (i % 2 == 0) {
                this->spawn(i, ex::when_all(one(), one()) | ex::then(same));
            } else {
                this->spawn(i, ex::when_any(one(), one()));
            }
        },
        [&] { this_thread::sync_wait(this->scope.join()); });
}

TYPED_TEST(composition, futures_become_ready_once) {
    std::vector<std::future<int>> futures;
    this->run(
        [&](int i) {
            futures.push_back(answer(this->house.scheduler(), i, this->counts,
                                     bind_env(this->stop_env(i), use_future)));
        },
        [&] {
            for (int i = 0; i != count; ++i) {
                try {
                    this->end(i).value(futures[static_cast<std::size_t>(i)].get(), i);
                } catch (const std::system_error& failure) {
                    this->end(i).error(failure.code());
                }
            }
        });
}

TYPED_TEST(composition, blocked_threads_resume_once) {
    this->run(
        [&](int i) {
            std::error_code ec;
            const int got = answer(this->house.scheduler(), i, this->counts,
                                   bind_env(this->stop_env(i), block[ec]));
            ec ? this->end(i).error(ec) : this->end(i).value(got, i);
        },
        [] {});
}

// Deadlines race with the operations and with the stops; the timers belong to another loop.
TYPED_TEST(composition, deadlines_end_operations_once) {
    io_house timers;
    std::minstd_rand dice(11);
    this->run(
        [&](int i) {
            const auto scheduler = this->house.scheduler();
            // Every third operation has no deadline: run() expects it not to be stopped.
            const auto limit = i % 3 == 0 ? std::chrono::nanoseconds(std::chrono::hours(1))
                                          : std::chrono::nanoseconds(dice() % 300'000);
            this->spawn(i, ex::write_env(ex::timeout(answer(scheduler, i, this->counts), limit),
                                         ex::prop(ex::get_timed_scheduler, timers.scheduler())));
        },
        [&] { this_thread::sync_wait(this->scope.join()); });
}

}  // namespace
