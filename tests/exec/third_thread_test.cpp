// Plan: one thread requests a stop, the operation completes inside the request, and a third thread,
// which waits for that, destroys the operation while the requester is still on its way out. Done
// many times for everything that passes a stop on through a state of its own.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/associate.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/repeat.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_future.hpp>
#include <coppice/exec/split.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/stop/single.hpp>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>

#include "sanitizers.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

#if defined(__OPTIMIZE__)
constexpr int rounds = coppice::test::sanitized ? 20'000 : 100'000;
#else
constexpr int rounds = 20'000;  // builds for development and sanitizers
#endif

// Waits for a stop. The first callback deregisters all and completes. If that callback ran before
// all were registered, start() completes instead.
template <std::size_t Callbacks>
class waits_for_stop {
public:
    using sender_concept = ex::sender_tag;
    waits_for_stop() noexcept = default;

    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(std::move(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            for (registration& callback : callbacks_) {
                callback.engage(coppice::get_stop_token(ex::get_env(rcvr_)), fire(*this));
            }
            arrive(registered);
        }

    private:
        class fire {
        public:
            explicit fire(operation& op) noexcept : op_(&op) {}
            void operator()() noexcept { op_->arrive(called); }

        private:
            operation* op_;
        };
        using registration =
            ex::internal::stop_registration<coppice::stop_token_of_t<ex::env_of_t<Rcvr>>, fire>;
        // The second of the two events to arrive completes the operation.
        enum event : unsigned { registered = 1, called = 2, both = 3 };
        void arrive(event now) noexcept {
            const unsigned before = events_.fetch_or(now, coppice::internal::acq_rel);
            if (before == both || (before | now) != both) return;
            for (registration& callback : callbacks_) callback.reset();
            ex::set_stopped(std::move(rcvr_));
        }
        Rcvr rcvr_;
        coppice::internal::atomic<unsigned> events_{0};
        std::array<registration, Callbacks> callbacks_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};

using never = waits_for_stop<1>;

// A thread that calls a given function once per round.
class stopper {
public:
    ~stopper() {
        give(nullptr);
        thread_.join();
    }
    // Makes the other thread call stop() soon.
    void give(const std::function<void()>* stop) {
        stop_ = stop;
        done_.store(false, coppice::internal::relaxed);
        turn_.fetch_add(1, coppice::internal::release);
    }
    // Blocks until that call has returned: until then, it uses the source of the round.
    void wait() {
        while (!done_.load(coppice::internal::acquire)) std::this_thread::yield();
    }

private:
    void run() {
        unsigned delay = 7919;
        for (unsigned turn = 0;; ++turn) {
            while (turn_.load(coppice::internal::acquire) == turn) std::this_thread::yield();
            if (stop_ == nullptr) return;
            delay = delay * 1103515245u + 12345u;
            for (unsigned i = delay >> 23; i != 0; --i) coppice::internal::spin_hint();
            (*stop_)();
            done_.store(true, coppice::internal::release);
        }
    }
    coppice::internal::atomic<unsigned> turn_{0};
    coppice::internal::atomic<bool> done_{false};
    const std::function<void()>* stop_ = nullptr;  // published by turn_
    std::thread thread_{[this] { run(); }};
};

// The source of a round. Algorithms do not pass its token on as it is.
using source_type = coppice::single_inplace_stop_source;

// make() returns a sender that only a stop ends; the round waits for its completion.
template <class Make>
void storm(Make make) {
    stopper other;
    for (int i = 0; i != rounds; ++i) {
        source_type source;
        const std::function<void()> stop = [&source] { source.request_stop(); };
        other.give(&stop);
        sync_wait(ex::write_env(make(), ex::prop(coppice::get_stop_token, source.get_token())));
        other.wait();
    }
}

using any =
    ex::any_sender<ex::completion_signatures<ex::set_value_t(), ex::set_error_t(std::exception_ptr),
                                             ex::set_stopped_t()>>;

TEST(third_thread, may_destroy_an_any_sender) {
    storm([] { return any(never()); });
}

TEST(third_thread, may_destroy_an_any_sender_with_two_callbacks) {
    storm([] { return any(waits_for_stop<2>()); });
}

TEST(third_thread, may_destroy_nested_any_senders) {
    storm([] { return any(any(never()) | ex::then([]() noexcept {})); });
}

TEST(third_thread, may_destroy_a_split_sender) {
    storm([] { return ex::split(never()); });
}

TEST(third_thread, may_destroy_a_loop) {
    storm([] { return never() | ex::then([]() noexcept { return true; }) | ex::repeat_until(); });
}

TEST(third_thread, may_destroy_a_let_async_scope) {
    storm([] {
        return ex::scoped([](auto scope) {
            ex::spawn(waits_for_stop<2>(), scope);
            ex::spawn(never(), scope);
            return never();
        });
    });
    storm([] { return ex::scoped([](auto scope) { ex::spawn(waits_for_stop<2>(), scope); }); });
}

TEST(third_thread, may_destroy_a_bulk_on_the_parallel_scheduler) {
    storm([] {
        return ex::schedule(ex::get_parallel_scheduler()) |
               ex::bulk_chunked(ex::par, 4, [](int, int) noexcept {});
    });
}

TEST(third_thread, may_destroy_the_future_of_spawned_work_and_its_scope) {
    stopper other;
    for (int i = 0; i != rounds; ++i) {
        source_type source;
        const std::function<void()> stop = [&source] { source.request_stop(); };
        ex::counting_scope scope;
        other.give(&stop);
        sync_wait(ex::write_env(ex::spawn_future(never(), scope.get_token()),
                                ex::prop(coppice::get_stop_token, source.get_token())));
        sync_wait(scope.join());
        other.wait();
    }
}

TEST(third_thread, may_destroy_a_scope_whose_join_has_completed) {
    stopper other;
    for (int i = 0; i != rounds; ++i) {
        auto scope = std::make_unique<ex::counting_scope>();
        ex::spawn(waits_for_stop<2>(), scope->get_token());
        ex::spawn(never(), scope->get_token());
        const std::function<void()> stop = [s = scope.get()] { s->request_stop(); };
        other.give(&stop);
        sync_wait(scope->join());
        scope.reset();
        other.wait();
    }
}

TEST(third_thread, may_destroy_a_scope_that_is_being_stopped_once_its_future_has_completed) {
    stopper other;
    for (int i = 0; i != rounds; ++i) {
        auto scope = std::make_unique<ex::counting_scope>();
        const std::function<void()> stop = [s = scope.get()] { s->request_stop(); };
        auto future = ex::spawn_future(never(), scope->get_token());
        other.give(&stop);
        sync_wait(std::move(future));
        sync_wait(scope->join());
        scope.reset();
        other.wait();
    }
}

}  // namespace
