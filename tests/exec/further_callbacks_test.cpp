// Plan: children that register several callbacks on an algorithm's token, which has one slot.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn_future.hpp>
#include <coppice/exec/split.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>

#include "emulated.hpp"
#include "probes.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;
using coppice::internal::acq_rel;
using coppice::test::repeated;
using coppice::test::sanitized;

constexpr int rounds = repeated(sanitized ? 200 : 2'000);

// A sender as users write them: registers Count callbacks on any token. Completes when all of them
// have run, or inside the first one.
template <int Count, bool First = false>
class listens {
public:
    using sender_concept = ex::sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(int), ex::set_stopped_t()>();
    }

    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(std::move(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            // One more for the start itself, so that it completes only after all are registered.
            for (auto& callback : callbacks_) {
                callback.emplace(coppice::get_stop_token(ex::get_env(rcvr_)), on_stop{this});
            }
            arrive();
        }

    private:
        struct on_stop {
            operation* self;
            void operator()() const noexcept { self->stop(); }
        };
        using token = coppice::stop_token_of_t<ex::env_of_t<Rcvr>>;

        void stop() noexcept {
            if (!First || fired_.fetch_add(1, acq_rel) == 0) arrive();
        }
        void arrive() noexcept {
            if (missing_.fetch_sub(1, acq_rel) != 1) return;
            for (auto& callback : callbacks_) callback.reset();
            ex::set_stopped(std::move(rcvr_));
        }
        Rcvr rcvr_;
        coppice::internal::atomic<int> missing_{1 + (First ? 1 : Count)};
        coppice::internal::atomic<int> fired_{0};
        std::array<std::optional<coppice::stop_callback_for_t<token, on_stop>>, Count> callbacks_;
    };
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};

// Runs a sender under a token, and stops it from another thread and from this one.
template <class Make>
void is_stopped(Make make) {
    for (int round = 0; round != rounds; ++round) {
        coppice::inplace_stop_source source;
        std::optional<std::thread> stopping;
        if (round % 2 == 0) {
            stopping.emplace([&] { source.request_stop(); });
        } else if (round % 4 == 1) {
            source.request_stop();
        }
        auto all = ex::when_all(make(), ex::just() | ex::then([&] {
                                            if (round % 4 == 3) source.request_stop();
                                        }));
        EXPECT_FALSE(sync_wait(ex::write_env(std::move(all), probes::stop_env(source))));
        if (stopping) stopping->join();
    }
}

template <int Count>
void under_every_algorithm() {
    is_stopped([] { return listens<Count>(); });
    is_stopped([] { return ex::when_all(listens<Count>(), listens<Count>()); });
    is_stopped([] { return ex::when_all(listens<Count, true>(), listens<Count>()); });
    is_stopped([] { return ex::when_any(listens<Count>(), listens<Count, true>()); });
    is_stopped([] { return ex::timeout(listens<Count>(), 1h); });
    is_stopped([] { return ex::timeout(listens<Count, true>(), 1h); });
    is_stopped([] { return ex::split(listens<Count>()); });
    is_stopped([] {
        auto shared = ex::split(listens<Count, true>());
        return ex::when_any(shared, shared);
    });
}
TEST(further_callbacks, a_child_may_register_two) {
    under_every_algorithm<2>();
}
TEST(further_callbacks, a_child_may_register_three) {
    under_every_algorithm<3>();
}
TEST(further_callbacks, a_child_may_register_ten) {
    under_every_algorithm<10>();
}

// The winner stops the others, each of which has registered several callbacks.
TEST(further_callbacks, a_result_stops_children_with_several_callbacks) {
    EXPECT_EQ(probes::outcome(ex::when_any(listens<2>(), listens<10>(), ex::just(7))), "value(7)");
    EXPECT_EQ(probes::outcome(ex::when_all(listens<2>(), listens<10, true>(), ex::just_error(7))),
              "error(7)");
}

// A timeout that expires stops its child.
TEST(further_callbacks, a_timeout_stops_a_child_with_several_callbacks) {
    const auto limited =
        ex::timeout(listens<3>(), 1ms) | ex::upon_error([](auto) noexcept { return 9; });
    EXPECT_EQ(std::get<0>(*sync_wait(limited)), 9);
}

// let_value(read_env(get_stop_token), f) gives f a token that the child's own senders also use.
TEST(further_callbacks, a_token_from_read_env_and_the_childs_own_token_can_both_be_used) {
    is_stopped([] {
        auto child = ex::read_env(coppice::get_stop_token) | ex::let_value([](auto token) {
                         return ex::when_all(
                             ex::write_env(listens<1>(), ex::prop(coppice::get_stop_token, token)),
                             ex::write_env(listens<2>(), ex::prop(coppice::get_stop_token, token)));
                     });
        return ex::when_all(child, child);
    });
}

// Dropping a future stops what was spawned.
TEST(further_callbacks, a_dropped_future_stops_work_with_several_callbacks) {
    for (int round = 0; round != rounds; ++round) {
        ex::counting_scope scope;
        {
            auto dropped = ex::spawn_future(listens<3>(), scope.get_token());
            auto stopped = ex::spawn_future(listens<2, true>(), scope.get_token());
            std::thread stopping([&] { scope.request_stop(); });
            EXPECT_FALSE(sync_wait(std::move(stopped)));
            stopping.join();
        }
        sync_wait(scope.join());
    }
}

}  // namespace
