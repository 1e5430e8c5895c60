// What all types of room sync promise at the edges: a stop while a wait begins, waits that never
// begin, extreme deadlines and counts, and completions that use or destroy what completed them.
#include "kinds.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using steady = std::chrono::steady_clock;

// A foreign token that is stopped at the moment at which a callback registers, and not before.
struct token_of_a_close_stop {
    template <class F>
    class callback_type {
    public:
        template <class G>
        callback_type(token_of_a_close_stop token, G&& g) : f_(std::forward<G>(g)) {
            if (!std::exchange(*token.stopped, true)) std::move(f_)();
        }
        callback_type(const callback_type&) = delete;
        callback_type& operator=(const callback_type&) = delete;

    private:
        F f_;
    };
    bool stop_requested() const noexcept { return *stopped; }
    static constexpr bool stop_possible() noexcept { return true; }
    bool operator==(const token_of_a_close_stop&) const = default;

    bool* stopped;
};

// A sender's operation that its receiver deletes at its end.
struct deleted_at_its_end {
    virtual ~deleted_at_its_end() = default;
    inplace_stop_token stop;
    int* ended = nullptr;
};
struct deleting_receiver {
    using receiver_concept = ex::receiver_tag;
    template <class... Results>
    void set_value(Results&&... results) && noexcept {
        [[maybe_unused]] const std::tuple<Results...> kept(std::forward<Results>(results)...);
        end();
    }
    template <class Error>
    void set_error(Error&&) && noexcept {
        end();
    }
    void set_stopped() && noexcept { end(); }
    ex::prop<get_stop_token_t, inplace_stop_token> get_env() const noexcept {
        return ex::prop(get_stop_token, operation->stop);
    }
    void end() noexcept {
        ++*operation->ended;
        delete operation;
    }
    deleted_at_its_end* operation;
};
template <class Kind>
struct deleted_wait : deleted_at_its_end {
    explicit deleted_wait(Kind& kind) : wait(ex::connect(kind.wait(), deleting_receiver{this})) {}
    ex::connect_result_t<decltype(std::declval<Kind&>().wait()), deleting_receiver> wait;
};
template <class Kind>
void begin_deleted_wait(Kind& kind, inplace_stop_token stop, int& ended) {
    auto* const made = new deleted_wait<Kind>(kind);
    made->stop = stop;
    made->ended = &ended;
    ex::start(made->wait);
}

template <class Kind>
class edges : public testing::Test {};
TYPED_TEST_SUITE(edges, all_kinds);

TYPED_TEST(edges, a_stop_while_a_wait_begins_takes_nothing) {
    TypeParam kind(2);
    bool stopped = false;
    probe<TypeParam> first;
    kind.wait(bind_env(ex::prop(get_stop_token, token_of_a_close_stop{&stopped}),
                       [&](std::error_code ec, auto&&...) {
                           ++first.ended;
                           first.error = ec;
                       }));
    EXPECT_TRUE(stopped);
    EXPECT_TRUE(first.was_stopped());
    probe<TypeParam> second;
    second.wait(kind);
    EXPECT_EQ(second.ended, 0);
    kind.grant();
    EXPECT_TRUE(second.was_granted());
    EXPECT_TRUE(kind.untouched());
}

TYPED_TEST(edges, a_wait_that_never_begins_takes_nothing_and_does_not_arrive) {
    TypeParam kind(1);
    {
        int ended = 0;
        const auto connected = std::make_unique<deleted_wait<TypeParam>>(kind);
        connected->ended = &ended;
        [[maybe_unused]] auto sender = kind.wait();
        [[maybe_unused]] auto moved = std::move(sender);
        [[maybe_unused]] auto in_a_task = wait_in_task(kind);
        EXPECT_EQ(ended, 0);
    }
    probe<TypeParam> waiter;
    waiter.wait(kind);
    EXPECT_EQ(waiter.ended, 0);
    kind.grant();
    EXPECT_TRUE(waiter.was_granted());
    EXPECT_TRUE(kind.untouched());
}

TYPED_TEST(edges, a_receiver_deletes_its_operation_however_it_ends) {
    int ended = 0;
    {
        TypeParam kind(1);
        inplace_stop_source stop;
        begin_deleted_wait(kind, stop.get_token(), ended);
        EXPECT_EQ(ended, 0);
        kind.grant();
        EXPECT_EQ(ended, 1);
    }
    for (const bool before : {true, false}) {
        TypeParam kind(1);
        inplace_stop_source stop;
        if (before) stop.request_stop();
        begin_deleted_wait(kind, stop.get_token(), ended);
        stop.request_stop();
        EXPECT_EQ(ended, before ? 2 : 3);
        kind.grant();
    }
    TypeParam kind(1);
    kind.grant();
    inplace_stop_source stop;
    begin_deleted_wait(kind, stop.get_token(), ended);
    EXPECT_EQ(ended, 4);
}

TYPED_TEST(edges, a_callback_destroys_what_it_waited_for_however_the_wait_ends) {
    for (const bool stopped : {true, false}) {
        auto kind = std::make_unique<TypeParam>(1);
        TypeParam& same = *kind;
        inplace_stop_source stop;
        kind->wait(bind_env(ex::prop(get_stop_token, stop.get_token()),
                            [&]<class... Results>(std::error_code, Results... results) {
                                [](Results...) {}(std::move(results)...);  // unlocks
                                if constexpr (requires { kind->held; }) kind->held.reset();
                                kind.reset();
                            }));
        if (stopped) {
            stop.request_stop();
        } else if constexpr (requires { same.held; }) {
            auto held = std::move(*same.held);
            same.held.reset();
            held = {};
        } else {
            same.grant();
        }
        EXPECT_FALSE(kind);
    }
}

TYPED_TEST(edges, a_completion_that_stops_the_next_waiter_loses_nothing) {
    TypeParam kind(3);
    probe<TypeParam> probes[3];
    probes[0].wait(kind, [&] { probes[1].stop.request_stop(); });
    probes[1].wait(kind);
    probes[2].wait(kind, [&] { probes[2].stop.request_stop(); });
    kind.grant();
    EXPECT_TRUE(probes[0].was_granted());
    EXPECT_TRUE(probes[1].was_granted() || probes[1].was_stopped());
    EXPECT_TRUE(probes[2].was_granted());
    EXPECT_TRUE(kind.untouched());
}

TYPED_TEST(edges, a_deadline_that_has_passed_stops_and_the_farthest_one_does_not) {
    for (const auto past : {steady::time_point::min(), steady::time_point()}) {
        TypeParam kind(2);
        std::error_code ec;
        kind.wait(bind_env(ex::prop(ex::get_deadline, ex::instant(past)), block[ec]));
        EXPECT_EQ(ec, std::errc::operation_canceled);
        bool granted = false;
        const ex::instant far(steady::time_point::max());
        kind.wait(bind_env(ex::prop(ex::get_deadline, far),
                           [&](std::error_code error, auto&&...) { granted = !error; }));
        EXPECT_FALSE(granted);
        kind.grant();
        EXPECT_TRUE(granted);
    }
}

TEST(async_semaphore, a_request_that_can_never_be_met_waits_and_leaves_when_it_is_stopped) {
    constexpr std::size_t most = (std::size_t{1} << 61) - 1;
    async_semaphore semaphore(most);
    constexpr std::size_t too_many = std::numeric_limits<std::size_t>::max();
    EXPECT_FALSE(semaphore.try_acquire(too_many));
    EXPECT_FALSE(semaphore.try_acquire(most + 1));
    inplace_stop_source stop;
    std::error_code error;
    semaphore.acquire(too_many, bind_env(ex::prop(get_stop_token, stop.get_token()),
                                         [&](std::error_code ec, auto&&) { error = ec; }));
    std::size_t got = 0;
    semaphore.acquire(most, [&](std::error_code, async_semaphore::permit permit) {
        got = permit.count();
        permit.forget();
    });
    EXPECT_EQ(got, 0u);
    stop.request_stop();
    EXPECT_EQ(error, std::errc::operation_canceled);
    EXPECT_EQ(got, most);
    EXPECT_EQ(semaphore.available(), 0u);
}

TEST(async_barrier, a_completion_arrives_at_the_next_phase_before_the_others_have_left_this_one) {
    async_barrier barrier(3);
    struct participant {
        void arrive() {
            barrier.arrive_and_wait([this](std::error_code, std::uint64_t phase) {
                phases.push_back(phase);
                if (phases.size() != 4) arrive();
            });
        }
        async_barrier& barrier;
        std::vector<std::uint64_t> phases{};
    };
    participant participants[] = {{barrier}, {barrier}, {barrier}};
    for (participant& p : participants) p.arrive();
    for (const participant& p : participants) {
        EXPECT_EQ(p.phases, (std::vector<std::uint64_t>{0, 1, 2, 3}));
    }
}

TEST(async_event, a_completion_resets_the_event_and_waits_again) {
    async_event event;
    int first = 0;
    int again = 0;
    for (int i = 0; i != 3; ++i) {
        event.wait([&](std::error_code) {
            ++first;
            event.reset();
            event.wait([&](std::error_code) { ++again; });
        });
    }
    EXPECT_TRUE(event.set());
    EXPECT_EQ(first, 3);
    EXPECT_EQ(again, 0);
    EXPECT_TRUE(event.set());
    EXPECT_EQ(again, 3);
}

TEST(async_once, a_get_that_tries_again_in_its_completion_leaves_the_errors_of_others) {
    async_once<int> once;
    async_event go;
    const auto fail = [&]() -> task<int> {
        co_await go.wait();
        throw std::system_error(std::make_error_code(std::errc::io_error));
    };
    std::vector<std::error_code> errors;
    int value = 0;
    once.get(fail, [&](std::error_code ec, int&) { errors.push_back(ec); });
    once.get(fail, [&](std::error_code ec, int&) {
        errors.push_back(ec);
        once.get([] { return 5; }, [&](std::error_code, int& made) { value = made; });
    });
    once.get(fail, [&](std::error_code ec, int&) { errors.push_back(ec); });
    go.set();
    EXPECT_EQ(errors, std::vector(3, std::make_error_code(std::errc::io_error)));
    EXPECT_EQ(value, 5);
}

}  // namespace
