// One thread passes a stop on to a task or an operation that has a stop source of its own. The task
// completes inside the stop, and another thread may destroy it before the stop returns.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/stop/shared.hpp>
#include <coppice/stop/single.hpp>
#include <coppice/task/task.hpp>
#include <coppice/token/transform.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

// Limits one storm in rounds and in time.
class storms {
public:
    bool more() { return ++count_ <= 100'000 && std::chrono::steady_clock::now() < end_; }

private:
    int count_ = 0;
    const std::chrono::steady_clock::time_point end_ =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
};

// Called by the requester after a completion inside its stop callback, before it returns to the
// code that passes the stop on.
void (*after_completion)() = nullptr;

// Completes when it is stopped, inside its stop callback, which it first deregisters.
template <class Token, class Complete>
class until_stop : coppice::immovable {
    struct on_stop {
        until_stop* self;
        void operator()() noexcept { self->arrive(); }
    };

public:
    explicit until_stop(Complete complete) noexcept : complete_(std::move(complete)) {}
    void start(Token token) noexcept {
        callback_.engage(std::move(token), on_stop{this});
        arrive();
    }

private:
    // The registration and the stop both arrive. The second to arrive completes.
    void arrive() noexcept {
        if (arrived_.exchange(1, coppice::internal::acq_rel) == 0) return;
        callback_.reset();
        complete_();
        if (after_completion != nullptr) after_completion();
    }
    Complete complete_;
    coppice::internal::atomic<int> arrived_{0};
    ex::internal::stop_registration<Token, on_stop> callback_;
};

struct never {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<ex::set_stopped_t()>;
    template <class Rcvr>
    class operation {
        struct complete {
            operation* self;
            void operator()() noexcept { ex::set_stopped(std::move(self->rcvr_)); }
        };

    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) : rcvr_(std::move(rcvr)), wait_(complete{this}) {}
        operation(operation&&) = delete;
        void start() & noexcept { wait_.start(coppice::get_stop_token(ex::get_env(rcvr_))); }

    private:
        Rcvr rcvr_;
        until_stop<coppice::stop_token_of_t<ex::env_of_t<Rcvr>>, complete> wait_;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const {
        return operation<Rcvr>(std::move(rcvr));
    }
};

// The same with a completion token: its operation has a stop token of its own if the waiter's is of
// another kind.
struct reading {
    struct complete {
        coppice::completion<int> done;
        void operator()() noexcept {
            coppice::completion<int> last = done;
            std::move(last)(std::make_error_code(std::errc::operation_canceled), 0);
        }
    };
    void operator()(coppice::completion<int> done) noexcept {
        wait.emplace(complete{done});
        wait->start(coppice::get_stop_token(done.get_env()));
    }
    reading() noexcept {}
    reading(reading&&) noexcept {}  // moved only before it begins
    std::optional<until_stop<coppice::inplace_stop_token, complete>> wait;
};
auto read_until_stopped() {
    return coppice::completion_token_transform<void(std::error_code, int)>(coppice::use_await,
                                                                           reading());
}

// A thread that requests the stop of each source it is handed.
class stopper {
public:
    stopper() : thread_([this] { run(); }) {}
    ~stopper() {
        hand_over([](void*) {}, nullptr, true);
        thread_.join();
    }
    template <class Source>
    void stop(Source& source) {
        hand_over([](void* s) { static_cast<Source*>(s)->request_stop(); }, &source, false);
    }
    void wait_until_done() {
        for (function r = current(); r != nullptr; r = current()) {
            request_.wait(r, coppice::internal::acquire);
        }
    }

private:
    using function = void (*)(void*);
    // acquire: sees what the other thread did before
    function current() const { return request_.load(coppice::internal::acquire); }
    void hand_over(function f, void* source, bool last) {
        wait_until_done();
        source_ = source;
        last_ = last;
        request_.store(f, coppice::internal::release);
        request_.notify_all();
    }
    void run() {
        for (bool last = false; !last;) {
            request_.wait(nullptr, coppice::internal::acquire);
            last = last_;
            current()(source_);
            request_.store(nullptr, coppice::internal::release);
            request_.notify_all();
        }
    }
    coppice::internal::atomic<function> request_{nullptr};
    void* source_ = nullptr;
    bool last_ = false;
    std::thread thread_;
};

template <class Token>
struct flagging_receiver {
    using receiver_concept = ex::receiver_tag;
    void set_value(auto&&...) && noexcept { completed->store(-1, coppice::internal::release); }
    void set_error(auto&&) && noexcept { completed->store(-1, coppice::internal::release); }
    void set_stopped() && noexcept { completed->store(1, coppice::internal::release); }
    auto get_env() const noexcept { return ex::prop(coppice::get_stop_token, token); }
    Token token;
    coppice::internal::atomic<int>* completed;
};

// An operation in memory that detects writes after the operation's end.
template <class Sndr, class Source>
class short_lived {
    using receiver = flagging_receiver<decltype(std::declval<Source&>().get_token())>;
    using operation = ex::connect_result_t<Sndr, receiver>;
    static constexpr std::byte gone{0xAB};

public:
    void start(Sndr sndr, Source& source) {
        completed_.store(0, coppice::internal::relaxed);
        struct made {
            operator operation() const {
                return ex::connect(std::move(sndr), receiver{source.get_token(), &completed});
            }
            Sndr& sndr;
            Source& source;
            coppice::internal::atomic<int>& completed;
        };
        op_ = ::new (static_cast<void*>(memory_)) operation(made{sndr, source, completed_});
        ex::start(*op_);
    }
    // Returns true if it was stopped.
    bool end() {
        for (int i = 0; completed_.load(coppice::internal::acquire) == 0; ++i) {
            if (i < 100) {
                coppice::internal::spin_hint();
            } else {
                coppice::internal::thread_yield();
            }
        }
        op_->~operation();
        std::memset(memory_, std::to_integer<int>(gone), sizeof memory_);
        return completed_.load(coppice::internal::acquire) == 1;
    }
    bool untouched() const {
        return std::all_of(memory_, memory_ + sizeof memory_,
                           [](std::byte b) { return b == gone; });
    }

private:
    coppice::internal::atomic<int> completed_{0};
    operation* op_ = nullptr;
    alignas(operation) std::byte memory_[sizeof(operation)];
};

coppice::internal::atomic<int> phase{0};

// A third thread destroys the operation while the first is inside the stop that it passes on: in
// the orders that chance gives, and in the worst one.
template <class Source, class Make>
void storm(Make make) {
    using sender = decltype(make());
    const auto op = std::make_unique<short_lived<sender, Source>>();
    stopper other;
    for (storms left; left.more();) {
        Source source;
        op->start(make(), source);
        other.stop(source);
        ASSERT_TRUE(op->end());
        other.wait_until_done();
        ASSERT_TRUE(op->untouched());
    }
    for (int i = 0; i != 10; ++i) {
        Source source;
        phase.store(0, coppice::internal::relaxed);
        after_completion = [] {
            phase.store(1, coppice::internal::release);
            while (phase.load(coppice::internal::acquire) != 2) coppice::internal::thread_yield();
        };
        op->start(make(), source);
        other.stop(source);
        while (phase.load(coppice::internal::acquire) != 1) coppice::internal::thread_yield();
        ASSERT_TRUE(op->end());
        phase.store(2, coppice::internal::release);
        other.wait_until_done();
        after_completion = nullptr;
        ASSERT_TRUE(op->untouched());
    }
}
// The same if the waiting thread runs the loop to which the operation returns.
template <class Source, class Make>
void storm_in_sync_wait(Make make) {
    stopper other;
    for (storms left; left.more();) {
        Source source;
        other.stop(source);
        ASSERT_FALSE(sync_wait(
            ex::write_env(make(), ex::prop(coppice::get_stop_token, source.get_token()))));
        other.wait_until_done();
    }
}

using coppice::inplace_stop_source;
using coppice::single_inplace_stop_source;

template <class Source>
struct own_source {
    using stop_source_type = Source;
};
template <class Source>
task<void, own_source<Source>> until_stopped() {
    co_await never();
}
template <class Source>
task<> parent_of_stopped() {
    co_await until_stopped<Source>();
}
task<> reads_until_stopped() {
    co_await read_until_stopped();
}

TEST(task_stop, a_task_that_completes_inside_the_stop_may_be_destroyed_at_once) {
    storm<inplace_stop_source>([] { return until_stopped<single_inplace_stop_source>(); });
}
TEST(task_stop, a_task_under_a_source_of_another_kind_may_be_destroyed_as_it_completes) {
    storm<coppice::stop_source>([] { return until_stopped<inplace_stop_source>(); });
    storm<single_inplace_stop_source>([] { return until_stopped<inplace_stop_source>(); });
}
TEST(task_stop, a_task_that_awaits_a_task_with_its_own_source_may_be_destroyed_as_it_completes) {
    storm<inplace_stop_source>([] { return parent_of_stopped<single_inplace_stop_source>(); });
    storm<coppice::stop_source>([] { return parent_of_stopped<single_inplace_stop_source>(); });
}
TEST(task_stop, a_task_that_reads_by_a_token_may_be_destroyed_as_it_completes) {
    storm<single_inplace_stop_source>([] { return reads_until_stopped(); });
}
TEST(task_stop, an_operation_with_a_completion_token_may_be_destroyed_as_it_completes) {
    storm<single_inplace_stop_source>([] { return read_until_stopped(); });
    storm<coppice::stop_source>([] { return read_until_stopped(); });
}
TEST(task_stop, a_task_that_returns_to_the_waiting_loop_may_be_destroyed_as_it_completes) {
    storm_in_sync_wait<inplace_stop_source>(
        [] { return until_stopped<single_inplace_stop_source>(); });
    storm_in_sync_wait<coppice::stop_source>(
        [] { return parent_of_stopped<single_inplace_stop_source>(); });
}
TEST(task_stop, a_task_that_returns_to_another_loop_may_be_destroyed_as_it_completes) {
    ex::run_loop loop;
    std::thread runner([&] { loop.run(); });
    storm_in_sync_wait<inplace_stop_source>([&] {
        return ex::starts_on(loop.get_scheduler(), until_stopped<single_inplace_stop_source>());
    });
    loop.finish();
    runner.join();
}
TEST(task_stop, the_tasks_of_a_scope_may_be_destroyed_as_they_complete) {
    stopper other;
    for (storms left; left.more();) {
        ex::counting_scope scope;
        for (int k = 0; k != 2; ++k) {
            ex::spawn(until_stopped<single_inplace_stop_source>() |
                          ex::upon_error([](auto&&) noexcept {}),
                      scope.get_token());
        }
        other.stop(scope);
        sync_wait(scope.join());
        other.wait_until_done();
    }
}

}  // namespace
